# needs: window_pads, windows
def average_pool(x, kernel, strides, pads, dilations, auto_pad, ceil_mode, include_pad):
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    inner, outer = [], []
    for a, b, c in reversed(list(zip(front, back, more))):
        inner += [a, b]
        outer += [0, c]
    counted = F.pad(torch.ones_like(x), inner, value=float(include_pad))
    total = windows(F.pad(F.pad(x, inner), outer), kernel, strides, dilations)
    counted = windows(F.pad(counted, outer), kernel, strides, dilations)
    return total.sum(-1) / counted.sum(-1)
