# needs: window_pads, windows
def lp_pool(x, p, kernel, strides, pads, dilations, auto_pad, ceil_mode):
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    both = []
    for a, b, c in reversed(list(zip(front, back, more))):
        both += [a, b + c]
    x = windows(F.pad(x, both), kernel, strides, dilations)
    return x.abs().pow(p).sum(-1).pow(1 / p)
