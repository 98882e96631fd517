def to_small(x, name):
    """Whole numbers of two or four bits, held in eight."""
    bits = int(name[-1])
    x = x.astype(jnp.int32)
    if name.startswith("u"):
        return (x & ((1 << bits) - 1)).astype(jnp.uint8)
    half = 1 << (bits - 1)
    return ((x + half) % (2 * half) - half).astype(jnp.int8)
