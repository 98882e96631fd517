def unique(x, axis, is_sorted):
    """Different elements, where each is first, which one each is, and how many there are."""
    if axis is None:
        x, axis = x.flatten(), 0
    wide = x.float() if x.dtype == torch.bfloat16 else x
    out = np.unique(wide.numpy(), True, True, True, axis=axis)
    values, first, inverse, counts = (torch.from_numpy(np.asarray(a)) for a in out)
    values = values.to(x.dtype)
    inverse = inverse.flatten()
    if not is_sorted:
        order = torch.argsort(first)
        rank = torch.argsort(order)
        values, first, counts = (
            values.index_select(axis, order),
            first[order],
            counts[order],
        )
        inverse = rank[inverse]
    return values, first, inverse, counts
