# needs: key
def dropout(x, rate, training, rng, number):
    """What is left of x, and the mask of it."""
    if not training or rate == 0:
        return x, jnp.ones(x.shape, dtype=jnp.bool_)
    if rng is None:
        raise ValueError(
            "dropout needs random numbers: give apply a key, rng=jax.random.key(0)"
        )
    mask = jax.random.bernoulli(key(rng, number), 1 - rate, x.shape)
    return jnp.where(mask, x / (1 - rate), 0).astype(x.dtype), mask
