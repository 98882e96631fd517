def conv_transpose(
    x, w, strides, pads, output_padding, groups, dilations, auto_pad, output_shape
):
    """A convolution of x with zeros between its elements."""
    n = len(strides)
    padding = []
    for i in range(n):
        reach = (w.shape[i + 2] - 1) * dilations[i]
        front, back = pads[i], pads[n + i]
        if output_shape is not None or auto_pad.startswith("SAME"):
            wanted = x.shape[i + 2] * strides[i]
            if output_shape is not None:
                wanted = output_shape[-n:][i]
            full = (x.shape[i + 2] - 1) * strides[i] + reach + 1
            total = full + output_padding[i] - wanted
            front = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            back = total - front
        padding.append((reach - front, reach - back + output_padding[i]))
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    w = jnp.flip(jnp.swapaxes(w, 1, 2), tuple(range(3, 3 + n)))
    return lax.conv_general_dilated(
        x,
        w.reshape(-1, *w.shape[2:]),
        (1,) * n,
        padding,
        lhs_dilation=strides,
        rhs_dilation=dilations,
        feature_group_count=groups,
    )
