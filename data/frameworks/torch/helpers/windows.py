def windows(x, kernel, strides, dilations):
    """The elements of each window along a last axis."""
    n = len(kernel)
    for i in range(n):
        reach = (kernel[i] - 1) * dilations[i] + 1
        x = x.unfold(i + 2, reach, strides[i])[..., :: dilations[i]]
    return x.flatten(2 + n)
