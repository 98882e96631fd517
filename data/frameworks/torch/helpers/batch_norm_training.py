def batch_norm_training(x, scale, bias, mean, var, epsilon, momentum):
    """Statistics of the batch, and the moving averages behind it."""
    dims = tuple(d for d in range(x.dim()) if d != 1)
    now, spread = x.mean(dims), x.var(dims, unbiased=False)
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, epsilon)
    return (
        y,
        mean * momentum + now * (1 - momentum),
        var * momentum + spread * (1 - momentum),
    )
