// Are both true?
@elementwise
@let ${elem(A)} %C = and(%A, %B)
