def scatter_elements(x, indices, updates, axis, reduction):
    places = list(jnp.indices(indices.shape, sparse=True))
    places[axis % x.ndim] = indices
    at = jnp.asarray(x).at[tuple(places)]
    how = {
        "none": at.set,
        "add": at.add,
        "mul": at.multiply,
        "max": at.max,
        "min": at.min,
    }
    return how[reduction](updates)
