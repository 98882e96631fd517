// The product of two elements; integers wrap around.
@elementwise
@let ${elem(A)} %C = %A * %B
