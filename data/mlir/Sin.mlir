// The sine.
@elementwise
@let ${elem(input)} %output = sin(%input)
