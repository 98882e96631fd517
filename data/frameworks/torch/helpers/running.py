def running(x, axis, total, exclusive, reverse):
    """A running sum or product, from either end, with or without the element itself."""
    if reverse:
        x = x.flip(axis)
    if exclusive:
        first = torch.full_like(x.narrow(axis, 0, 1), total is torch.cumprod)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = total(x, axis, dtype=x.dtype)
    return y.flip(axis) if reverse else y
