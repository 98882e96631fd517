// The next whole number below.
@elementwise
@let ${elem(X)} %Y = floor(%X)
