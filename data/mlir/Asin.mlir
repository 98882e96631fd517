// The angle of a sine.
@elementwise
@let ${elem(input)} %output = asin(%input)
