def cross_entropy(log_probabilities, labels, weights, ignored, reduction):
    """How little is expected of the classes that are right."""
    counted = (
        jnp.ones(labels.shape, dtype=jnp.bool_)
        if ignored is None
        else labels != ignored
    )
    places = jnp.where(counted, labels, 0)
    found = jnp.take_along_axis(log_probabilities, jnp.expand_dims(places, 1), 1)
    share = counted.astype(found.dtype)
    if weights is not None:
        share = share * weights[places]
    loss = -found.squeeze(1) * share
    if reduction == "none":
        return loss
    return jnp.sum(loss) / (jnp.sum(share) if reduction == "mean" else 1)
