def conv_transpose(
    x, w, b, strides, pads, output_padding, groups, dilations, auto_pad, output_shape
):
    """A transposed convolution whose padding the framework has no words for."""
    n = len(strides)
    conv = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][n - 1]
    y = conv(x, w, b, strides, 0, 0, groups, dilations)
    for i in range(n):
        axis, size = i + 2, y.shape[i + 2]
        front, back = pads[i], pads[n + i]
        if output_shape is not None or auto_pad.startswith("SAME"):
            wanted = x.shape[axis] * strides[i]
            if output_shape is not None:
                wanted = output_shape[-n:][i]
            total = size + output_padding[i] - wanted
            front = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            back = total - front
        y = y.movedim(axis, -1)
        y = F.pad(y, (-front, output_padding[i] - back))
        if b is not None and output_padding[i] > back:
            start = size - front
            y = torch.cat(
                [y[..., :start], y[..., start:] + b.reshape(1, -1, *[1] * n)], -1
            )
        y = y.movedim(-1, axis)
    return y
