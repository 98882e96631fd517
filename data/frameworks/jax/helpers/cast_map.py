def cast_map(x, dtype, most):
    """The values of a map in the order of its keys."""
    keys = sorted(x) if most is None else range(most)
    values = [x.get(k, 0 if dtype is not object else "") for k in keys]
    values = [v.item() if hasattr(v, "item") else v for v in values]
    if dtype is object:
        return np.array([str(v) for v in values], dtype=object).reshape(1, -1)
    values = [
        float(v) if jnp.issubdtype(dtype, jnp.floating) else int(float(v))
        for v in values
    ]
    return jnp.array(values, dtype=dtype).reshape(1, -1)
