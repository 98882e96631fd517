// The bits that one has.
@elementwise
@let ${elem(A)} %C = or(%A, %B)
