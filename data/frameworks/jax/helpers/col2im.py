def col2im(x, image, block, strides, pads, dilations):
    """The sum of overlapping blocks."""
    n = len(image)
    padded = [image[i] + pads[i] + pads[n + i] for i in range(n)]
    steps = [
        (padded[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(n)
    ]
    place = np.zeros((), np.int64)
    for i in range(n):
        along = (
            np.arange(block[i])[:, None] * dilations[i]
            + np.arange(steps[i]) * strides[i]
        )
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = block[i], steps[i]
        place = place * padded[i] + along.reshape(shape)
    place = np.broadcast_to(place, (*block, *steps)).reshape(-1)
    channels = x.shape[1] // math.prod(block)
    x = x.reshape(x.shape[0], channels, -1)
    out = jnp.zeros((x.shape[0], channels, math.prod(padded)), x.dtype)
    out = out.at[:, :, place].add(x).reshape(x.shape[0], channels, *padded)
    return out[(..., *(slice(pads[i], pads[i] + image[i]) for i in range(n)))]
