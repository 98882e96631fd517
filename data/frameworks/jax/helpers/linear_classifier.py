# needs: post_transform, labels_of
def linear_classifier(x, weights, bias, labels, dtype, transform):
    n = max(len(bias), 1)
    scores = x.astype(jnp.float32) @ np.float32(weights).reshape(n, -1).T
    if bias:
        scores = scores + np.float32(bias)
    if n == 1 and len(labels) == 2:
        positive = (scores[:, 0] > 0.0).astype(jnp.int32)
        other = 1 - jax.nn.sigmoid(scores) if transform == "LOGISTIC" else -scores
        scores = jnp.concatenate([other, post_transform(scores, transform)], 1)
        return labels_of(positive, labels, dtype), scores
    return (
        labels_of(jnp.argmax(scores, 1), labels, dtype),
        post_transform(scores, transform),
    )
