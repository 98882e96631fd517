# needs: round_to, to_float8, per_block
def quantize(x, scale, zero, name, axis, block, saturate):
    """Numbers as multiples of a scale, in few bits."""
    wide = torch.promote_types(torch.float32, x.dtype)
    scale = per_block(scale, x, axis, block).to(wide)
    y = x.to(wide) / scale
    if name.startswith("float8"):
        return to_float8(y, getattr(torch, name.replace("float8", "float8_")), saturate)
    if name.startswith("float"):
        return round_to(y, name)
    bits = int(name.lstrip("uint"))
    low = 0 if name[0] == "u" else -(2 ** (bits - 1))
    high = low + 2**bits - 1
    y = torch.round(y)
    if zero is not None:
        y = y + per_block(zero, x, axis, block).to(wide)
    y = y.clamp(low, high)
    if name[0] == "u":
        return y.to(torch.uint8 if bits <= 8 else torch.int32)
    return y.to(torch.int8 if bits <= 8 else torch.int16)
