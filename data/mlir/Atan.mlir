// The angle of a tangent.
@elementwise
@let ${elem(input)} %output = atan(%input)
