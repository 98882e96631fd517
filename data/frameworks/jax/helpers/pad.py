def pad(x, pads, mode, value, axes):
    """Padding of any kind, below zero too."""
    axes = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    for i, axis in enumerate(axes):
        front, back, size = pads[i], pads[len(axes) + i], x.shape[axis]
        if mode == "constant":
            both = [(0, 0, 0)] * x.ndim
            both[axis] = (front, back, 0)
            x = lax.pad(x, jnp.asarray(value, dtype=x.dtype).reshape(()), both)
            continue
        place = np.arange(-front, size + back)
        if mode == "wrap":
            place = place % size
        elif mode == "reflect" and size > 1:
            place = size - 1 - abs(place % (2 * size - 2) - (size - 1))
        else:
            place = place.clip(0, max(size - 1, 0))
        x = jnp.take(x, place, axis=axis)
    return x
