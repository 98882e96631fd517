# needs: window_pads
def max_pool(x, kernel, strides, pads, dilations, auto_pad, ceil_mode):
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    return lax.reduce_window(
        x,
        np.array(-np.inf if is_float else jnp.iinfo(x.dtype).min, x.dtype),
        lax.max,
        (1, 1, *kernel),
        (1, 1, *strides),
        [(0, 0), (0, 0), *((a, b + c) for a, b, c in zip(front, back, more))],
        window_dilation=(1, 1, *dilations),
    )
