def non_max_suppression(boxes, scores, most, iou_threshold, score_threshold, center):
    """Greedily, the best boxes that overlap little with better ones."""
    if center:
        middle, size = boxes[..., :2], boxes[..., 2:]
        boxes = torch.cat([middle - size / 2, middle + size / 2], -1)
    low = torch.minimum(boxes[..., :2], boxes[..., 2:])
    high = torch.maximum(boxes[..., :2], boxes[..., 2:])
    area = (high - low).prod(-1)
    found = []
    for batch in range(scores.shape[0]):
        for group in range(scores.shape[1]):
            kept = []
            order = torch.sort(scores[batch, group], descending=True, stable=True)
            for score, i in zip(order.values.tolist(), order.indices.tolist()):
                if len(kept) == most:
                    break
                if score_threshold is not None and score <= score_threshold:
                    break
                size = torch.minimum(high[batch, i], high[batch, kept])
                size = size - torch.maximum(low[batch, i], low[batch, kept])
                shared = size.clamp(min=0).prod(-1)
                whole = area[batch, i] + area[batch, kept] - shared
                if bool((shared > iou_threshold * whole).any()):
                    continue
                kept.append(i)
                found.append([batch, group, i])
    return torch.tensor(found, dtype=torch.int64).reshape(-1, 3)
