// The inverse of the hyperbolic sine.
@elementwise
@let ${elem(input)} %output = asinh(%input)
