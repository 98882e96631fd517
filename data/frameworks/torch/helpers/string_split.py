def string_split(x, delimiter, most):
    """The parts of texts, and how many there are of each."""
    parts = [
        text.split(delimiter or None, most) if text else [] for text in x.flatten().tolist()
    ]
    width = max(map(len, parts), default=0)
    rows = [part + [""] * (width - len(part)) for part in parts]
    out = np.array(rows, dtype=object).reshape(*x.shape, width)
    return out, torch.tensor([len(part) for part in parts]).reshape(tuple(x.shape))
