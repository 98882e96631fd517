# needs: concrete
def roi_align(x, rois, batch, height, width, ratio, scale, mode, half_pixel):
    """Samples of regions between pixels, pooled to a grid."""
    out = []
    shift = 0.5 if half_pixel else 0.0
    rows, columns = x.shape[2:]
    for roi, b in zip(concrete(rois).tolist(), concrete(batch).tolist()):
        x1, y1, x2, y2 = (v * scale - shift for v in roi)
        w, h = x2 - x1, y2 - y1
        if not half_pixel:
            w, h = max(w, 1.0), max(h, 1.0)
        ny = ratio if ratio > 0 else math.ceil(h / height)
        nx = ratio if ratio > 0 else math.ceil(w / width)
        ys = y1 + (np.arange(height * ny) + 0.5) * h / height / ny
        xs = x1 + (np.arange(width * nx) + 0.5) * w / width / nx
        inside = ((ys >= -1) & (ys <= rows))[:, None] & ((xs >= -1) & (xs <= columns))
        ys, xs = ys.clip(0, rows - 1), xs.clip(0, columns - 1)
        top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
        bottom, right = (top + 1).clip(0, rows - 1), (left + 1).clip(0, columns - 1)
        fy, fx = (ys - top)[:, None].astype(x.dtype), (xs - left).astype(x.dtype)
        plane = x[b]
        parts = [
            plane[:, top][:, :, left] * (1 - fy) * (1 - fx),
            plane[:, top][:, :, right] * (1 - fy) * fx,
            plane[:, bottom][:, :, left] * fy * (1 - fx),
            plane[:, bottom][:, :, right] * fy * fx,
        ]
        shape = (-1, height, ny, width, nx)
        if mode == "max":
            part = jnp.max(jnp.stack(parts), 0) * inside
            out.append(jnp.max(part.reshape(shape), (2, 4)))
        else:
            out.append(jnp.mean((sum(parts) * inside).reshape(shape), (2, 4)))
    return jnp.stack(out)
