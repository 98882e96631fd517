def scatter_nd(x, indices, updates, reduction):
    depth = indices.shape[-1]
    if reduction in ("none", "add"):
        index = indices.long().unbind(-1)
        return x.index_put(index, updates, accumulate=reduction == "add")
    flat = x.reshape(-1, math.prod(x.shape[depth:]))
    place = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device)
    for i in range(depth):
        along = indices[..., i].long()
        place = place * x.shape[i] + torch.where(along < 0, along + x.shape[i], along)
    place = place.reshape(-1, 1).expand(-1, flat.shape[1])
    how = {"mul": "prod", "max": "amax", "min": "amin"}[reduction]
    updates = updates.reshape(place.shape)
    return flat.scatter_reduce(0, place, updates, how).reshape(x.shape)
