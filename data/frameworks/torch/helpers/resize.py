def resize(
    x,
    roi,
    scales,
    sizes,
    axes,
    mode,
    transform,
    antialias=False,
    cubic=-0.75,
    exclude_outside=False,
    extrapolation=0.0,
    policy="stretch",
    nearest="round_prefer_floor",
):
    """Interpolation along one axis after the other."""
    axes = range(x.dim()) if axes is None else [a % x.dim() for a in axes]
    if scales is None:
        scales = [s / x.shape[a] for s, a in zip(sizes, axes)]
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(scales)
            sizes = [math.floor(scale * x.shape[a] + 0.5) for a in axes]
    if sizes is None:
        sizes = [math.floor(s * x.shape[a]) for s, a in zip(scales, axes)]
    dtype = x.dtype
    y = x if dtype.is_floating_point else x.double()
    outside = torch.zeros((), dtype=torch.bool)
    for i, axis in enumerate(axes):
        n, m, scale = x.shape[axis], sizes[i], scales[i]
        out = torch.arange(m, dtype=torch.float64)
        if transform == "half_pixel":
            place = (out + 0.5) / scale - 0.5
        elif transform == "half_pixel_symmetric":
            adjust = m / (scale * n)
            place = n / 2 * (1 - adjust) + (out + 0.5) / scale - 0.5
        elif transform == "pytorch_half_pixel":
            place = (out + 0.5) / scale - 0.5 if m > 1 else out * 0
        elif transform == "align_corners":
            place = out * (n - 1) / (scale * n - 1) if scale * n != 1 else out * 0
        elif transform == "asymmetric":
            place = out / scale
        else:
            low, high = roi[i], roi[len(axes) + i]
            if m > 1:
                place = low * (n - 1) + out * (high - low) * (n - 1) / (m - 1)
            else:
                place = out * 0 + 0.5 * (low + high) * (n - 1)
            beyond = (place < 0) | (place > n - 1)
            shape = [1] * x.dim()
            shape[axis] = -1
            outside = outside | beyond.reshape(shape)
        if m == n and scale == 1 and transform != "tf_crop_and_resize":
            continue
        if mode == "nearest":
            if nearest == "floor":
                index = place.floor()
            elif nearest == "ceil":
                index = place.ceil()
            elif nearest == "round_prefer_ceil":
                index = (place + 0.5).floor()
            else:
                index = (place - 0.5).ceil()
            y = y.index_select(axis, index.long().clamp(0, n - 1))
            continue
        wide = max(1.0, 1 / scale) if antialias else 1.0
        reach = math.ceil((2 if mode == "cubic" else 1) * wide)
        index = place.floor().long().unsqueeze(1) + torch.arange(1 - reach, reach + 1)
        t = (place.unsqueeze(1) - index).abs() / wide
        if mode == "cubic":
            inner = ((cubic + 2) * t - (cubic + 3)) * t * t + 1
            outer = ((cubic * t - 5 * cubic) * t + 8 * cubic) * t - 4 * cubic
            weight = torch.where(t <= 1, inner, torch.where(t < 2, outer, 0.0))
        else:
            weight = (1 - t).clamp(min=0)
        if exclude_outside:
            weight = weight * ((index >= 0) & (index < n))
        if exclude_outside or antialias:
            weight = weight / weight.sum(1, keepdim=True)
        matrix = torch.zeros(m, n, dtype=torch.float64)
        matrix = matrix.scatter_add(1, index.clamp(0, n - 1), weight).to(y.dtype)
        y = (y.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
    if transform == "tf_crop_and_resize":
        y = torch.where(outside, torch.tensor(extrapolation, dtype=y.dtype), y)
    if not dtype.is_floating_point:
        y = y.round() if mode != "nearest" else y
    return y.to(dtype)
