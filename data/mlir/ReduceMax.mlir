// The largest element over axes.
@do reduce(data, has(axes) ? axes : none, reduced, "max")
