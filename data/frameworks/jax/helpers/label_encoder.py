# needs: concrete
def label_encoder(x, keys, values, default, dtype):
    """Looks each element up in a table."""
    table = {k: v for k, v in zip(keys, values)}
    nan = next((v for k, v in table.items() if k != k), default)
    elements = concrete(x).flatten().tolist()
    found = [table.get(k, nan if k != k else default) for k in elements]
    if dtype is object:
        return np.array(found, dtype=object).reshape(x.shape)
    return jnp.array(found, dtype=dtype).reshape(x.shape)
