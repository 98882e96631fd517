def one_hot(indices, depth, values, axis):
    indices = torch.where(indices < 0, indices + depth, indices)
    shape = [1] * (indices.dim() + 1)
    shape[axis] = depth
    places = torch.arange(depth, device=indices.device).reshape(shape)
    rank = indices.dim() + 1
    return torch.where(indices.unsqueeze(axis % rank) == places, values[1], values[0])
