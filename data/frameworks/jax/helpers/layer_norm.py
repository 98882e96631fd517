def layer_norm(x, scale, bias, axis, epsilon):
    axes = tuple(range(axis % x.ndim, x.ndim))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centered = wide - jnp.mean(wide, axes, keepdims=True)
    var = jnp.mean(centered * centered, axes, keepdims=True)
    y = (centered * lax.rsqrt(var + epsilon)).astype(x.dtype) * scale
    return y if bias is None else y + bias
