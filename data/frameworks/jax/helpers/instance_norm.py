def instance_norm(x, scale, bias, epsilon):
    axes, shape = tuple(range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    centered = x - jnp.mean(x, axes, keepdims=True)
    var = jnp.mean(centered * centered, axes, keepdims=True)
    y = centered * lax.rsqrt(var + epsilon)
    return y * scale.reshape(shape) + bias.reshape(shape)
