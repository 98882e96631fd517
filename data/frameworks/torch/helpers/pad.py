def pad(x, pads, mode, value, axes):
    """Padding of any kind, below zero too."""
    rank = x.dim()
    axes = range(rank) if axes is None else [a % rank for a in axes]
    for i, axis in enumerate(axes):
        front, back, size = pads[i], pads[len(axes) + i], x.shape[axis]
        place = torch.arange(-front, size + back, device=x.device)
        inside = (place >= 0) & (place < size)
        if mode == "wrap":
            place = place % size
        elif mode == "reflect" and size > 1:
            place = (place % (2 * size - 2) - (size - 1)).abs()
            place = size - 1 - place
        else:
            place = place.clamp(0, max(size - 1, 0))
        if mode == "constant" and size == 0:
            shape = [*x.shape]
            shape[axis] = len(place)
            x = torch.full(shape, value, dtype=x.dtype, device=x.device)
            continue
        x = x.index_select(axis, place)
        if mode == "constant":
            shape = [1] * rank
            shape[axis] = -1
            x = torch.where(
                inside.reshape(shape), x, torch.tensor(value, dtype=x.dtype)
            )
    return x
