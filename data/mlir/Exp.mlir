// e to the power of an element.
@elementwise
@let ${elem(input)} %output = exp(%input)
