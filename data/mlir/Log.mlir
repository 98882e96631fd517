// The natural logarithm.
@elementwise
@let ${elem(input)} %output = log(%input)
