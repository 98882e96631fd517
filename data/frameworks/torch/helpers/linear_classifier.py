# needs: constant, post_transform, labels_of
def linear_classifier(x, weights, bias, labels, dtype, transform):
    n = max(len(bias), 1)
    scores = x.float() @ constant(x, weights).reshape(n, -1).T
    if bias:
        scores = scores + constant(x, bias)
    if n == 1 and len(labels) == 2:
        positive = scores[:, 0] > 0.0
        other = 1 - torch.sigmoid(scores) if transform == "LOGISTIC" else -scores
        scores = torch.cat([other, post_transform(scores, transform)], 1)
        return labels_of(positive.long(), labels, dtype), scores
    return (
        labels_of(scores.argmax(1), labels, dtype),
        post_transform(scores, transform),
    )
