def per_block(values, x, axis, block):
    """Values of the whole tensor, of one axis or of blocks along it, ready to multiply x."""
    if values.dim() == 0 or values.numel() == 1:
        return values.reshape(())
    if block:
        axis %= x.dim()
        return values.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    if values.dim() > 1:
        return values
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)
