// Sums over axes.
@do reduce(data, has(axes) ? axes : none, reduced, "sum")
