def slice_axes(x, starts, ends, axes, steps):
    """Slices with steps of any sign."""
    rank = len(x.shape)
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis = (axes[i] if axes is not None else i) % rank
        step = steps[i] if steps is not None else 1
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        if end < -x.shape[axis] and step < 0:
            places = range(*slice(start, None, step).indices(x.shape[axis]))
        if isinstance(x, np.ndarray):
            x = x.take(list(places), axis)
        else:
            index = torch.tensor(list(places), dtype=torch.int64, device=x.device)
            x = x.index_select(axis, index)
    return x
