def reduce_extreme(x, dims, keep, largest):
    """The largest or smallest element along axes that may have none."""
    empty = any(x.shape[d] == 0 for d in dims)
    if not empty:
        return (x.amax if largest else x.amin)(dim=dims, keepdim=keep)
    if x.dtype == torch.bool:
        value = not largest
    elif x.dtype.is_floating_point:
        value = -math.inf if largest else math.inf
    else:
        info = torch.iinfo(x.dtype)
        value = info.min if largest else info.max
    shape = x.sum(dim=dims, keepdim=keep).shape
    return torch.full(shape, value, dtype=x.dtype, device=x.device)
