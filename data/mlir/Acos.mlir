// The angle of a cosine.
@elementwise
@let ${elem(input)} %output = acos(%input)
