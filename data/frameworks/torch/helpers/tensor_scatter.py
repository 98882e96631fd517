def tensor_scatter(cache, update, starts, axis, circular):
    """New entries of a cache, from a place on that may differ in each batch."""
    axis %= cache.dim()
    place = torch.arange(update.shape[axis]).reshape(1, -1)
    if starts is not None:
        place = place + starts.reshape(-1, 1)
    if circular:
        place = place % cache.shape[axis]
    shape = [place.shape[0]] + [1] * (cache.dim() - 1)
    shape[axis] = place.shape[1]
    return cache.scatter(axis, place.reshape(shape).expand(update.shape), update)
