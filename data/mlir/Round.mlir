// The nearest whole number, halves to even.
@elementwise
@let ${elem(X)} %Y = round(%X)
