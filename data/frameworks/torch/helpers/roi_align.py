def roi_align(x, rois, batch, height, width, ratio, scale, mode, half_pixel):
    """Samples of regions between pixels, pooled to a grid."""
    out = []
    shift = 0.5 if half_pixel else 0.0
    rows, columns = x.shape[2:]
    for roi, b in zip(rois, batch.tolist()):
        x1, y1, x2, y2 = (float(v) * scale - shift for v in roi)
        w, h = x2 - x1, y2 - y1
        if not half_pixel:
            w, h = max(w, 1.0), max(h, 1.0)
        ny = ratio if ratio > 0 else math.ceil(h / height)
        nx = ratio if ratio > 0 else math.ceil(w / width)
        ys = y1 + (torch.arange(height * ny) + 0.5) * h / height / ny
        xs = x1 + (torch.arange(width * nx) + 0.5) * w / width / nx
        inside_y, inside_x = (ys >= -1) & (ys <= rows), (xs >= -1) & (xs <= columns)
        ys, xs = ys.clamp(0, rows - 1), xs.clamp(0, columns - 1)
        top, left = ys.floor().long(), xs.floor().long()
        bottom, right = (top + 1).clamp(max=rows - 1), (left + 1).clamp(max=columns - 1)
        fy, fx = (ys - top).unsqueeze(1).to(x.dtype), (xs - left).to(x.dtype)
        inside = inside_y.unsqueeze(1) & inside_x
        plane = x[b]
        parts = [
            plane[:, top][:, :, left] * (1 - fy) * (1 - fx),
            plane[:, top][:, :, right] * (1 - fy) * fx,
            plane[:, bottom][:, :, left] * fy * (1 - fx),
            plane[:, bottom][:, :, right] * fy * fx,
        ]
        shape = (-1, height, ny, width, nx)
        if mode == "max":
            part = torch.stack(parts).amax(0) * inside
            out.append(part.reshape(shape).amax((2, 4)))
        else:
            out.append((sum(parts) * inside).reshape(shape).mean((2, 4)))
    return torch.stack(out)
