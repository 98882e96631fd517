def local_response_norm(x, size, alpha, beta, bias):
    rest = (1,) * (x.ndim - 2)
    around = [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)]
    total = lax.reduce_window(
        x * x, np.zeros((), x.dtype), lax.add, (1, size, *rest), (1,) * x.ndim, around
    )
    return x / jnp.power(bias + alpha / size * total, beta)
