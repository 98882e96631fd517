def to_float8(x, dtype, saturate):
    """The nearest number of eight bits; what is too large becomes the largest one."""
    x = x.astype(jnp.float32)
    most = float(jnp.finfo(dtype).max)
    if saturate:
        return jnp.clip(x, -most, most).astype(dtype)
    special = jnp.inf if dtype == jnp.float8_e5m2 else jnp.nan
    step = 2.0 ** (
        math.floor(math.log2(most)) - (2 if jnp.finfo(dtype).nmant == 2 else 3)
    )
    beyond = jnp.abs(x) >= most + step / 2
    if jnp.finfo(dtype).nmant == 3:
        beyond = beyond & (jnp.abs(x) > most + step / 2)
    over = jnp.where(jnp.isnan(x), x, jnp.copysign(special, x))
    return jnp.where(beyond, over, x).astype(dtype)
