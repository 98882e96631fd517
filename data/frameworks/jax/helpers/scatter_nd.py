def scatter_nd(x, indices, updates, reduction):
    at = jnp.asarray(x).at[tuple(indices[..., i] for i in range(indices.shape[-1]))]
    how = {
        "none": at.set,
        "add": at.add,
        "mul": at.multiply,
        "max": at.max,
        "min": at.min,
    }
    return how[reduction](updates)
