// The square root.
@elementwise
@let ${elem(X)} %Y = sqrt(%X)
