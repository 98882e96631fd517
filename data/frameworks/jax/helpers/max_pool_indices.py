# needs: window_pads, windows
def max_pool_indices(x, kernel, strides, pads, dilations, auto_pad, ceil_mode, column):
    """A pool with the places of its elements in all of x."""
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    both = [(0, 0), (0, 0), *((a, b + c) for a, b, c in zip(front, back, more))]
    plane = x.shape[2:]
    place = np.arange(math.prod(plane)).reshape(plane[::-1] if column else plane)
    place = place.T if column else place
    batch = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * len(kernel))
    place = jnp.array(place + batch * math.prod(plane), dtype=jnp.int64)
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    least = -np.inf if is_float else jnp.iinfo(x.dtype).min
    x = windows(jnp.pad(x, both, constant_values=least), kernel, strides, dilations)
    place = windows(jnp.pad(place, both), kernel, strides, dilations)
    best = jnp.argmax(x, axis=-1, keepdims=True)
    return (
        jnp.take_along_axis(x, best, -1)[..., 0],
        jnp.take_along_axis(place, best, -1)[..., 0],
    )
