def same_pad(x, kernel, strides, dilations, lower, value):
    """Pads so that there is one window for each step of the stride."""
    both = []
    for i in reversed(range(len(kernel))):
        size = x.shape[i + 2]
        reach = (kernel[i] - 1) * dilations[i] + 1
        total = max((-(-size // strides[i]) - 1) * strides[i] + reach - size, 0)
        small, large = total // 2, total - total // 2
        both += [large, small] if lower else [small, large]
    return F.pad(x, both, value=value)
