def reshape(x, shape, allow_zero):
    """A size of 0 keeps the axis, unless it means no elements."""
    if not allow_zero:
        shape = [s or x.shape[i] for i, s in enumerate(shape)]
    if isinstance(x, np.ndarray) or 0 not in shape:
        return x.reshape(shape)
    known = math.prod(s for s in shape if s > 0)
    return x.reshape([0 if s < 0 and known else max(s, 0) for s in shape])
