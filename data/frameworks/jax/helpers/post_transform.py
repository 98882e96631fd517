def post_transform(scores, name):
    """What makes probabilities of scores."""
    if name == "SOFTMAX":
        return jax.nn.softmax(scores, -1)
    if name == "SOFTMAX_ZERO":
        inside = jnp.where(scores == 0, -jnp.inf, scores)
        return jnp.where(scores == 0, 0.0, jax.nn.softmax(inside, -1))
    if name == "LOGISTIC":
        return jax.nn.sigmoid(scores)
    if name == "PROBIT":
        return math.sqrt(2.0) * lax.erf_inv(2 * scores - 1)
    return scores
