def split(x, sizes, axis):
    """Parts of given sizes, or of one size but for the last."""
    if isinstance(sizes, int):
        sizes = [sizes] * -(-x.shape[axis] // sizes)
    return jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis)
