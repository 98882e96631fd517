def windows(x, kernel, strides, dilations):
    """The elements of each window along a last axis."""
    n = len(kernel)
    for i in range(n):
        count = (x.shape[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        place = (
            np.arange(count)[:, None] * strides[i] + np.arange(kernel[i]) * dilations[i]
        )
        x = jnp.moveaxis(jnp.take(x, place, axis=i + 2), i + 3, -1)
    return x.reshape(*x.shape[: 2 + n], -1)
