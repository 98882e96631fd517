// The smallest element over axes.
@do reduce(data, has(axes) ? axes : none, reduced, "min")
