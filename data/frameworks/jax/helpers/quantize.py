# needs: round_to, to_float8, per_block
def quantize(x, scale, zero, name, axis, block, saturate):
    """Numbers as multiples of a scale, in few bits."""
    wide = jnp.promote_types(jnp.float32, x.dtype)
    y = x.astype(wide) / per_block(scale, x, axis, block).astype(wide)
    if name.startswith("float8"):
        return to_float8(y, getattr(jnp, name.replace("float8", "float8_")), saturate)
    if name.startswith("float"):
        return round_to(y, name)
    bits = int(name.lstrip("uint"))
    low = 0 if name[0] == "u" else -(2 ** (bits - 1))
    y = jnp.round(y)
    if zero is not None:
        y = y + per_block(zero, x, axis, block).astype(wide)
    kind = "uint" if name[0] == "u" else "int"
    return jnp.clip(y, low, low + 2**bits - 1).astype(f"{kind}{max(bits, 8)}")
