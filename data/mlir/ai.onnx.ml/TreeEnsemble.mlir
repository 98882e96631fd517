// Decision trees whose leaves add to targets.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set targets = attr("n_targets")
@set joins = ["AVERAGE", "SUM", "MIN", "MAX"]
@set finishes = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
@do forest_rows(X, "leaf", targets, joins[attr("aggregate_function")], rows, n, "%scores", "%counted")
@set how = finishes[attr("post_transform")]
@do finish_rows("%scores", rows, n, targets, targets > 1 or how == "PROBIT" ? how : "NONE", none, Y)
