def window_pads(shape, kernel, strides, pads, dilations, auto_pad, ceil_mode):
    """Padding before and after each axis, and what the last window reaches over."""
    front, back, more = [], [], []
    n = len(kernel)
    for i in range(n):
        size, reach = shape[i + 2], (kernel[i] - 1) * dilations[i] + 1
        a, b = pads[i], pads[n + i]
        if auto_pad.startswith("SAME"):
            total = max((-(-size // strides[i]) - 1) * strides[i] + reach - size, 0)
            a = (total + (auto_pad == "SAME_LOWER")) // 2
            b = total - a
        extra = 0
        if ceil_mode:
            steps = -(-(size + a + b - reach) // strides[i])
            if steps * strides[i] >= size + a:
                steps -= 1
            extra = max(steps * strides[i] + reach - size - a - b, 0)
        front.append(a)
        back.append(b)
        more.append(extra)
    return front, back, more
