def string_split(x, delimiter, most):
    """The parts of texts, and how many there are of each."""
    parts = [
        text.split(delimiter or None, most) if text else []
        for text in x.flatten().tolist()
    ]
    width = max(map(len, parts), default=0)
    rows = [part + [""] * (width - len(part)) for part in parts]
    out = np.array(rows, dtype=object).reshape(*x.shape, width)
    counts = torch.tensor([len(part) for part in parts], dtype=torch.int64)
    return out, counts.reshape(tuple(x.shape))
