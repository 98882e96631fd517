// The opposite truth.
@elementwise
@let i1 %Y = xor(%X, true)
