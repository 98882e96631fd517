// Is one true?
@elementwise
@let ${elem(A)} %C = or(%A, %B)
