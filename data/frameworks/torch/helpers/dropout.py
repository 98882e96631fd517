def dropout(x, p, training):
    """Dropout that also gives its mask."""
    if not training or p == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    mask = torch.rand_like(x) >= p
    return x * mask / (1 - p), mask
