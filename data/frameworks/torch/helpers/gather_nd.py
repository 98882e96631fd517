def gather_nd(x, indices, batch_dims):
    index = indices.long().unbind(-1)
    batch = []
    for i in range(batch_dims):
        places = torch.arange(x.shape[i], device=indices.device)
        shape = [1] * (indices.dim() - 1)
        shape[i] = -1
        batch.append(places.reshape(shape))
    return x[(*batch, *index)]
