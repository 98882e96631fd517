def slice_axes(x, starts, ends, axes, steps):
    """Slices with steps of any sign."""
    parts = [slice(None)] * len(x.shape)
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis = (axes[i] if axes is not None else i) % len(x.shape)
        step = steps[i] if steps is not None else 1
        beyond = end < -x.shape[axis] and step < 0
        parts[axis] = slice(start, None if beyond else end, step)
    return x[tuple(parts)]
