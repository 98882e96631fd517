// The magnitude; of the least integer, that integer.
@elementwise
@if is_float(X)
@let ${elem(X)} %Y = abs(%X)
@elif is_unsigned(X)
@let ${elem(X)} %Y = %X
@else
@let ${elem(X)} %Y = %X < 0 ? 0 - %X : %X
@end
