// The cosine.
@elementwise
@let ${elem(input)} %output = cos(%input)
