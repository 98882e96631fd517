def key(rng, number):
    """A key of random numbers for one place in the code."""
    return jax.random.fold_in(jax.random.key(0) if rng is None else rng, number)
