# needs: concrete
def max_roi_pool(x, rois, shape, scale):
    """The largest elements of parts of regions."""

    def parts(start, end, count, size):
        length = max(end - start + 1, 1) / count
        return [
            (
                min(max(math.floor(i * length) + start, 0), size),
                min(max(math.ceil((i + 1) * length) + start, 0), size),
            )
            for i in range(count)
        ]

    out = []
    for roi in concrete(rois).tolist():
        left, top, right, bottom = (math.floor(v * scale + 0.5) for v in roi[1:])
        plane = x[int(roi[0])]
        for a, b in parts(top, bottom, shape[0], x.shape[2]):
            for c, d in parts(left, right, shape[1], x.shape[3]):
                part = plane[:, a:b, c:d]
                zero = jnp.zeros(plane.shape[0], x.dtype)
                out.append(jnp.max(part, (1, 2)) if part.size else zero)
    pooled = jnp.stack(out, -1) if out else jnp.zeros(0, x.dtype)
    return jnp.swapaxes(pooled.reshape(x.shape[1], len(rois), *shape), 0, 1)
