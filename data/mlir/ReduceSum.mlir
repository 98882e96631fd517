// Sums over axes, in the type of the elements, halves in f32.
@do reduce(data, has(axes) ? axes : none, reduced, "sum")
