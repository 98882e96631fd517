# needs: per_block
def dequantize(x, scale, zero, dtype, axis, block):
    """What quantized numbers stand for."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    y = x.to(wide)
    if zero is not None:
        y = y - per_block(zero.to(wide), x, axis, block)
    return (y * per_block(scale.to(wide), x, axis, block)).to(dtype)
