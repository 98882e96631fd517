def label_encoder(x, keys, values, default, dtype):
    """Looks each element up in a table."""
    table = {k: v for k, v in zip(keys, values)}
    nan = next((v for k, v in table.items() if k != k), default)
    found = [table.get(k, nan if k != k else default) for k in x.flatten().tolist()]
    if dtype is object:
        return np.array(found, dtype=object).reshape(tuple(x.shape))
    return torch.tensor(found, dtype=dtype).reshape(tuple(x.shape))
