// The inverse of the hyperbolic cosine.
@elementwise
@let ${elem(input)} %output = acosh(%input)
