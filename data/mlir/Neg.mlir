// The number with the other sign; the least integer wraps to itself.
@elementwise
@let ${elem(X)} %Y = -%X
