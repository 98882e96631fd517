def round_to(x, name, mode="nearest"):
    """The nearest number of a format that has few; ties go to the even one."""
    x = x.astype(jnp.float32)
    if name == "float8e8m0":
        exponent = jnp.floor(jnp.log2(jnp.abs(x)))
        low = jnp.exp2(exponent)
        up = {"up": x > low, "down": x < 0}.get(mode, x >= 1.5 * low)
        out = jnp.where(jnp.isnan(x), x, jnp.where(up, 2 * low, low))
        return jnp.maximum(out, 2.0**-127)
    bits, bias = {"float4e2m1": (1, 1), "float6e2m3": (3, 1), "float6e3m2": (2, 3)}[
        name
    ]
    most = {"float4e2m1": 6.0, "float6e2m3": 7.5, "float6e3m2": 28.0}[name]
    size = jnp.minimum(jnp.abs(x), most)
    exponent = jnp.floor(jnp.log2(jnp.maximum(size, 2.0 ** (1 - bias))))
    step = jnp.exp2(exponent - bits)
    out = jnp.clip(jnp.copysign(jnp.round(size / step) * step, x), -most, most)
    return jnp.where(jnp.isnan(x), -0.0, out)
