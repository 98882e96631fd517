# needs: window_pads
def lp_pool(x, p, kernel, strides, pads, dilations, auto_pad, ceil_mode):
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    total = lax.reduce_window(
        jnp.power(jnp.abs(x), p),
        np.zeros((), x.dtype),
        lax.add,
        (1, 1, *kernel),
        (1, 1, *strides),
        [(0, 0), (0, 0), *((a, b + c) for a, b, c in zip(front, back, more))],
        window_dilation=(1, 1, *dilations),
    )
    return jnp.power(total, 1 / p)
