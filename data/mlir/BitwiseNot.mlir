// All bits turned round.
@elementwise
@let ${elem(X)} %Y = xor(%X, -1)
