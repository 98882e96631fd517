def top_k(x, k, axis, largest):
    """The k largest or smallest, of equal ones those in front."""
    order = jnp.argsort(x, axis=axis, stable=True, descending=largest)
    places = lax.slice_in_dim(order, 0, k, axis=axis)
    return jnp.take_along_axis(x, places, axis), places
