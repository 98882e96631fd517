// The class with the largest product of features and coefficients, and all of them. Two classes may share
// one row of coefficients, whose score is that of the second.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set labels = attr("classlabels_ints")
@set classes = len(labels)
@set given = known(attr("intercepts")) ? attr("intercepts") : []
@set coefficients = attr("coefficients")
@set shared = classes == 2 and (len(given) == 1 or len(given) == 0 and dim(X, rank(X) - 1) == len(coefficients))
@set count = shared ? 1 : classes
@set starts = len(given) > 0 ? given : [0.0] * count
@do linear_rows(X, rows, n, coefficients, count, starts, "%scores")
@set how = attr("post_transform")
@if shared
@do pair_rows("%scores", rows, n, how, true, 0, "%pair", "%best")
@if has(Z)
@do finish_rows("%pair", rows, n, 2, how == "SOFTMAX" or how == "SOFTMAX_ZERO" ? "NONE" : how, none, Z)
@end
@else
@do best_of_rows("%scores", none, rows, n, classes, "%best")
@if has(Z)
@do finish_rows("%scores", rows, n, classes, how, none, Z)
@end
@end
@if has(Y)
@do label_rows("%best", rows, n, labels, Y)
@end
