// The hyperbolic sine.
@elementwise
@let ${elem(input)} %output = sinh(%input)
