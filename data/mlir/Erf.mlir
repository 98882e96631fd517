// The error function.
@elementwise
@let ${elem(input)} %output = erf(%input)
