# needs: concrete
def unique(x, axis, is_sorted):
    """Different elements, their first places, which one each is, their counts."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    values, first, inverse, counts = np.unique(concrete(x), True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first)
        values, first, counts = values.take(order, axis), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return jnp.array(values), *(
        jnp.array(a, jnp.int64) for a in (first, inverse, counts)
    )
