def running(x, axis, total, exclusive, reverse):
    """A running sum or product, from either end, with or without the element itself."""
    if reverse:
        x = jnp.flip(x, axis)
    if exclusive:
        rest = lax.slice_in_dim(x, 0, x.shape[axis] - 1, axis=axis)
        first = jnp.full_like(
            lax.slice_in_dim(x, 0, 1, axis=axis), total is jnp.cumprod
        )
        x = jnp.concatenate([first, rest], axis)
    y = total(x, axis, dtype=x.dtype)
    return jnp.flip(y, axis) if reverse else y
