// The hyperbolic tangent.
@elementwise
@let ${elem(input)} %output = tanh(%input)
