// Products of features and coefficients, for each target; a single target is not transformed.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set targets = attr("targets")
@set starts = known(attr("intercepts")) and len(attr("intercepts")) > 0 ? attr("intercepts") : [0.0] * targets
@do linear_rows(X, rows, n, attr("coefficients"), targets, starts, "%scores")
@set how = targets == 1 and attr("post_transform") != "PROBIT" ? "NONE" : attr("post_transform")
@do finish_rows("%scores", rows, n, targets, how, none, Y)
