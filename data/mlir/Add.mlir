// The sum of two elements.
@elementwise
@let ${elem(A)} %C = %A + %B
