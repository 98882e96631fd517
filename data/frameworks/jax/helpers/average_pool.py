# needs: window_pads
def average_pool(x, kernel, strides, pads, dilations, auto_pad, ceil_mode, include_pad):
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    padding = [(0, 0), (0, 0), *((a, b + c) for a, b, c in zip(front, back, more))]
    total = lax.reduce_window(
        x,
        np.zeros((), x.dtype),
        lax.add,
        (1, 1, *kernel),
        (1, 1, *strides),
        padding,
        window_dilation=(1, 1, *dilations),
    )
    counted = np.ones((), np.int64)
    for i, size in enumerate(total.shape[2:]):
        place = (
            np.arange(size)[:, None] * strides[i] + np.arange(kernel[i]) * dilations[i]
        )
        place = place - front[i]
        low, high = (
            (-front[i], x.shape[i + 2] + back[i])
            if include_pad
            else (0, x.shape[i + 2])
        )
        counted = counted[..., None] * ((place >= low) & (place < high)).sum(1)
    return total / counted.astype(x.dtype)
