def post_transform(scores, name):
    """What makes probabilities of scores."""
    if name == "SOFTMAX":
        return F.softmax(scores, -1)
    if name == "SOFTMAX_ZERO":
        inside = torch.where(scores == 0, -math.inf, scores)
        return torch.where(scores == 0, 0.0, F.softmax(inside, -1))
    if name == "LOGISTIC":
        return torch.sigmoid(scores)
    if name == "PROBIT":
        return math.sqrt(2.0) * torch.erfinv(2 * scores - 1)
    return scores
