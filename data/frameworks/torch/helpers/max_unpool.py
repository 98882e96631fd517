def max_unpool(x, places, shape, kernel, strides, pads):
    """Elements back at the places they were pooled from."""
    n = len(kernel)
    own = [
        (x.shape[i + 2] - 1) * strides[i] - pads[i] - pads[n + i] + kernel[i]
        for i in range(n)
    ]
    full = [*x.shape[:2], *own]
    out = x.new_zeros(math.prod(full)).scatter(0, places.flatten(), x.flatten())
    if shape is None or list(shape) == full:
        return out.reshape(full)
    plane, wide = math.prod(own), math.prod(shape[2:])
    index = places.flatten() // plane * wide
    rest = places.flatten() % plane
    step, own_step = 1, 1
    for i in reversed(range(n)):
        index = index + rest // own_step % own[i] * step
        step, own_step = step * shape[i + 2], own_step * own[i]
    return x.new_zeros(math.prod(shape)).scatter(0, index, x.flatten()).reshape(shape)
