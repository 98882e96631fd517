// Decision trees whose leaves add to targets. Targets that no leaf has a weight for stay 0, but a single one
// gets its base value; a single one is not transformed.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set targets = attr("n_targets")
@set plain_base = attr("base_values")
@set wide_base = attr("base_values_as_tensor")
@set base = known(wide_base) ? wide_base : known(plain_base) ? plain_base : []
@if len(base) > 1 and len(base) != targets
@refuse "there are " + len(base) + " base values for " + targets + " scores"
@end
@do forest_rows(X, "target", targets, attr("aggregate_function"), rows, n, "%scores", "%counted")
@do add_base("%scores", targets == 1 ? none : "%counted", base, rows, n, targets, "%sums")
@set how = attr("post_transform")
@do finish_rows("%sums", rows, n, targets, targets > 1 or how == "PROBIT" ? how : "NONE", none, Y)
