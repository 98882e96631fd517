// The bits that both have.
@elementwise
@let ${elem(A)} %C = and(%A, %B)
