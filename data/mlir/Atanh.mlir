// The inverse of the hyperbolic tangent.
@elementwise
@let ${elem(input)} %output = atanh(%input)
