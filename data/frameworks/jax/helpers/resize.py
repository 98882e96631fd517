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
    axes = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    if scales is None:
        scales = [s / x.shape[a] for s, a in zip(sizes, axes)]
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(scales)
            sizes = [math.floor(scale * x.shape[a] + 0.5) for a in axes]
    if sizes is None:
        sizes = [math.floor(s * x.shape[a]) for s, a in zip(scales, axes)]
    dtype = x.dtype
    y = x if jnp.issubdtype(dtype, jnp.floating) else x.astype(jnp.float32)
    outside = np.zeros((), np.bool_)
    for i, axis in enumerate(axes):
        n, m, scale = x.shape[axis], sizes[i], scales[i]
        out = np.arange(m, dtype=np.float64)
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
            shape = [1] * x.ndim
            shape[axis] = -1
            outside = outside | beyond.reshape(shape)
        if m == n and scale == 1 and transform != "tf_crop_and_resize":
            continue
        if mode == "nearest":
            if nearest == "floor":
                index = np.floor(place)
            elif nearest == "ceil":
                index = np.ceil(place)
            elif nearest == "round_prefer_ceil":
                index = np.floor(place + 0.5)
            else:
                index = np.ceil(place - 0.5)
            y = jnp.take(y, index.astype(np.int64).clip(0, n - 1), axis=axis)
            continue
        wide = max(1.0, 1 / scale) if antialias else 1.0
        reach = math.ceil((2 if mode == "cubic" else 1) * wide)
        index = np.floor(place).astype(np.int64)[:, None]
        index = index + np.arange(1 - reach, reach + 1)
        t = abs(place[:, None] - index) / wide
        if mode == "cubic":
            inner = ((cubic + 2) * t - (cubic + 3)) * t * t + 1
            outer = ((cubic * t - 5 * cubic) * t + 8 * cubic) * t - 4 * cubic
            weight = np.where(t <= 1, inner, np.where(t < 2, outer, 0.0))
        else:
            weight = (1 - t).clip(0)
        if exclude_outside:
            weight = weight * ((index >= 0) & (index < n))
        if exclude_outside or antialias:
            weight = weight / weight.sum(1, keepdims=True)
        matrix = np.zeros((m, n))
        np.add.at(matrix, (np.arange(m)[:, None], index.clip(0, n - 1)), weight)
        y = jnp.moveaxis(jnp.moveaxis(y, axis, -1) @ matrix.T.astype(y.dtype), -1, axis)
    if transform == "tf_crop_and_resize":
        y = jnp.where(outside, extrapolation, y)
    if not jnp.issubdtype(dtype, jnp.floating):
        y = jnp.round(y) if mode != "nearest" else y
    return y.astype(dtype)
