// The bits that exactly one has.
@elementwise
@let ${elem(A)} %C = xor(%A, %B)
