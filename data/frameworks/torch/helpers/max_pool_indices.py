# needs: window_pads, windows
def max_pool_indices(x, kernel, strides, pads, dilations, auto_pad, ceil_mode, column):
    """A pool with the places of its elements in all of x."""
    front, back, more = window_pads(
        x.shape, kernel, strides, pads, dilations, auto_pad, ceil_mode
    )
    both = []
    for a, b, c in reversed(list(zip(front, back, more))):
        both += [a, b + c]
    place = torch.arange(x[0, 0].numel(), device=x.device)
    if column:
        place = place.reshape(tuple(reversed(x.shape[2:])))
        place = place.permute(tuple(reversed(range(place.dim()))))
    place = place.reshape(1, 1, *x.shape[2:])
    planes = torch.arange(x.shape[0] * x.shape[1], device=x.device)
    planes = planes.reshape(x.shape[0], x.shape[1], *[1] * len(kernel))
    place = place + planes * x[0, 0].numel()
    x = windows(F.pad(x, both, value=-math.inf), kernel, strides, dilations)
    place = windows(F.pad(place, both), kernel, strides, dilations)
    best = x.max(-1, keepdim=True)
    return best.values.squeeze(-1), place.gather(-1, best.indices).squeeze(-1)
