def batch_norm(x, scale, bias, mean, var, epsilon, momentum, training):
    """The normalized batch, and the running statistics behind it."""
    shape = (1, -1) + (1,) * (x.ndim - 2)
    now, spread, next_mean, next_var = mean, var, mean, var
    if training:
        axes = tuple(a for a in range(x.ndim) if a != 1)
        now, spread = jnp.mean(x, axes), jnp.var(x, axes)
        next_mean = mean * momentum + lax.stop_gradient(now) * (1 - momentum)
        next_var = var * momentum + lax.stop_gradient(spread) * (1 - momentum)
    factor = scale * lax.rsqrt(spread + epsilon)
    y = (x - now.reshape(shape)) * factor.reshape(shape) + bias.reshape(shape)
    return y.astype(x.dtype), next_mean.astype(mean.dtype), next_var.astype(var.dtype)
