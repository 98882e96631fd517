def col2im(x, image, block, strides, pads, dilations):
    """The sum of overlapping blocks."""
    n = len(image)
    padded = [image[i] + pads[i] + pads[n + i] for i in range(n)]
    steps = [
        (padded[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(n)
    ]
    place = torch.zeros((), dtype=torch.int64)
    for i in range(n):
        inner = torch.arange(block[i]) * dilations[i]
        outer = torch.arange(steps[i]) * strides[i]
        along = inner.unsqueeze(1) + outer
        along = along.reshape(
            *[1] * i, block[i], *[1] * (n - 1), steps[i], *[1] * (n - 1 - i)
        )
        place = place * padded[i] + along
    place = place.expand(*block, *steps).reshape(-1)
    channels = x.shape[1] // math.prod(block)
    x = x.reshape(x.shape[0], channels, -1)
    out = x.new_zeros(x.shape[0], channels, math.prod(padded))
    out = out.index_add(2, place, x).reshape(x.shape[0], channels, *padded)
    for i in range(n):
        out = out.narrow(i + 2, pads[i], image[i])
    return out
