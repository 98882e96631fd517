# needs: concrete
def non_max_suppression(boxes, scores, most, iou_threshold, score_threshold, center):
    """Greedily, the best boxes that overlap little with better ones."""
    boxes, scores = concrete(boxes), concrete(scores)
    if center:
        middle, size = boxes[..., :2], boxes[..., 2:]
        boxes = np.concatenate([middle - size / 2, middle + size / 2], -1)
    low = np.minimum(boxes[..., :2], boxes[..., 2:])
    high = np.maximum(boxes[..., :2], boxes[..., 2:])
    area = (high - low).prod(-1)
    found = []
    for batch in range(scores.shape[0]):
        for group in range(scores.shape[1]):
            kept = []
            for i in np.argsort(-scores[batch, group], kind="stable").tolist():
                if len(kept) == most:
                    break
                if (
                    score_threshold is not None
                    and scores[batch, group, i] <= score_threshold
                ):
                    break
                size = np.minimum(high[batch, i], high[batch, kept])
                size = size - np.maximum(low[batch, i], low[batch, kept])
                shared = np.clip(size, 0, None).prod(-1)
                whole = area[batch, i] + area[batch, kept] - shared
                if (shared > iou_threshold * whole).any():
                    continue
                kept.append(i)
                found.append([batch, group, i])
    return jnp.array(found, dtype=jnp.int64).reshape(-1, 3)
