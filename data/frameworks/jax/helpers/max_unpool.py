def max_unpool(x, places, shape, kernel, strides, pads):
    """Elements back at the places they were pooled from."""
    n = len(kernel)
    own = [
        (x.shape[i + 2] - 1) * strides[i] - pads[i] - pads[n + i] + kernel[i]
        for i in range(n)
    ]
    full = [*x.shape[:2], *own]
    index = places.reshape(-1)
    if shape is not None and list(shape) != full:
        plane, wide = math.prod(own), math.prod(shape[2:])
        rest, index = index % plane, index // plane * wide
        step, own_step = 1, 1
        for i in reversed(range(n)):
            index = index + rest // own_step % own[i] * step
            step, own_step = step * shape[i + 2], own_step * own[i]
        full = shape
    out = jnp.zeros(math.prod(full), x.dtype)
    return out.at[index].set(x.reshape(-1)).reshape(full)
