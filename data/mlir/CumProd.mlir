// Running products along an axis.
@do cumulate(x, axis, y, "product")
