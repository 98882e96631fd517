// Running sums along an axis.
@do cumulate(x, axis, y, "sum")
