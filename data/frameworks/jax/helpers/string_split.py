def string_split(x, delimiter, most):
    """The parts of texts, and how many there are of each."""
    parts = [
        text.split(delimiter or None, most) if text else []
        for text in x.flatten().tolist()
    ]
    width = max(map(len, parts), default=0)
    rows = [part + [""] * (width - len(part)) for part in parts]
    out = np.array(rows, dtype=object).reshape(*x.shape, width)
    counts = [len(part) for part in parts]
    return out, jnp.array(counts, dtype=jnp.int64).reshape(x.shape)
