def reshape(x, shape, allow_zero):
    """A size of 0 keeps the axis, unless it means no elements."""
    if not allow_zero:
        shape = [s or x.shape[i] for i, s in enumerate(shape)]
    if 0 in shape or x.size == 0:
        rest = math.prod(s for s in shape if s > 0)
        shape = [(0 if 0 in shape else x.size // rest) if s < 0 else s for s in shape]
    return x.reshape(shape)
