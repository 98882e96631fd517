def from_text(x, dtype):
    """Texts as numbers."""
    read = float if dtype.is_floating_point else int
    values = [read(text) for text in np.asarray(x, dtype=object).flatten().tolist()]
    return torch.tensor(values, dtype=dtype).reshape(tuple(np.shape(x)))
