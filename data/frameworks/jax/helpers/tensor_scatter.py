def tensor_scatter(cache, update, starts, axis, circular):
    """New entries of a cache, from a place on that may differ in each batch."""
    axis %= cache.ndim
    place = jnp.arange(update.shape[axis])[None]
    if starts is not None:
        place = place + starts.reshape(-1, 1)
    if circular:
        place = place % cache.shape[axis]
    places = list(jnp.indices(update.shape, sparse=True))
    shape = [place.shape[0]] + [1] * (cache.ndim - 1)
    shape[axis] = place.shape[1]
    places[axis] = place.reshape(shape)
    return cache.at[tuple(places)].set(update)
