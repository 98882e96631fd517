def per_block(values, x, axis, block):
    """Values of the tensor, of one axis or of blocks along it, ready to multiply x."""
    if values.size == 1:
        return values.reshape(())
    if block:
        axis %= x.ndim
        return lax.slice_in_dim(
            jnp.repeat(values, block, axis), 0, x.shape[axis], axis=axis
        )
    if values.ndim > 1:
        return values
    shape = [1] * x.ndim
    shape[axis] = -1
    return values.reshape(shape)
