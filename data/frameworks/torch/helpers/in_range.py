def in_range(indices, size):
    """Places counted from the end become places counted from the front."""
    return torch.where(indices < 0, indices + size, indices).long()
