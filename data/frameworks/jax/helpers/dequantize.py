# needs: per_block
def dequantize(x, scale, zero, dtype, axis, block):
    """What quantized numbers stand for."""
    y = x.astype(jnp.float32)
    if zero is not None:
        y = y - per_block(zero.astype(jnp.float32), x, axis, block)
    return (y * per_block(scale.astype(jnp.float32), x, axis, block)).astype(dtype)
