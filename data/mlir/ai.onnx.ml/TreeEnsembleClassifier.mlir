// Decision trees whose leaves add to classes: the class with the largest sum, and all of them.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set labels = attr("classlabels_int64s")
@set classes = len(labels)
@set plain_base = attr("base_values")
@set wide_base = attr("base_values_as_tensor")
@set base = known(wide_base) ? wide_base : known(plain_base) ? plain_base : []
@if len(base) > 1 and len(base) != classes
@refuse "there are " + len(base) + " base values for " + classes + " scores"
@end
@set how = attr("post_transform")
@do forest_rows(X, "class", classes, "SUM", rows, n, "%scores", "%counted")
@if classes != 2
@do add_base("%scores", none, base, rows, n, classes, "%sums")
@do best_of_rows("%sums", len(base) > 0 ? none : "%counted", rows, n, classes, "%best")
@if has(Z)
@do finish_rows("%sums", rows, n, classes, how, none, Z)
@end
@else
// If only the first of two classes has a score, that counts for the second: it is a probability where no
// weight is negative, else its distance from the border. One base value is for the first.
@set ids = attr("class_ids")
@set wide_weights = attr("class_weights_as_tensor")
@set weights = known(wide_weights) ? wide_weights : attr("class_weights")
@set one_class = len(ids) > 0 and len([c for c in ids if c != ids[0]]) == 0
@set probability = one_class and len([w for w in weights if not (w >= 0)]) == 0
@set F = tensor([rows, 2], "f64")
@set B = tensor([rows, 2], "i1")
@set sizes = known(rows) ? [] : [n]
@do add_base("%scores", "%counted", len(base) == 1 ? [base[0], 0.0] : base, rows, n, 2, "%sums")
%pair_empty = tensor.empty(${sizes}) : ${F}
%best_empty = tensor.empty(${sizes}) : ${tensor([rows], "i64")}
%plain_empty = tensor.empty(${sizes}) : ${tensor([rows], "i1")}
%decided:2 = linalg.generic {
    indexing_maps = [affine_map<(r) -> (r, 0)>, affine_map<(r) -> (r, 1)>, affine_map<(r) -> (r, 1)>, affine_map<(r) -> (r)>, affine_map<(r) -> (r)>],
    iterator_types = ["parallel"]}
    ins(%sums, %sums, %counted : ${F}, ${F}, ${B}) outs(%best_empty, %plain_empty : ${tensor([rows], "i64")}, ${tensor([rows], "i1")}) {
^bb0(%first: f64, %second: f64, %has_second: i1, %old_class: i64, %old_plain: i1):
@let f64 %score = %has_second ? %second : %first
@let i1(f64) %above = %score > ${probability ? "0.5" : "0"}
@let i64 %class = %above ? 1 : 0
@let i1 %no_second = xor(%has_second, true)
@if len(base) == 2
@let i1 %alone = false
@else
@let i1 %alone = and(%no_second, true)
@end
  linalg.yield %class, %alone : i64, i1
} -> (${tensor([rows], "i64")}, ${tensor([rows], "i1")})
%pair = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, 0)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%sums, %sums, %decided#1 : ${F}, ${F}, ${tensor([rows], "i1")}) outs(%pair_empty : ${F}) {
^bb0(%own: f64, %single: f64, %is_alone: i1, %old: f64):
  %column = linalg.index 1 : index
@if probability and how != "LOGISTIC"
@let f64 %other = 1 - %single
@else
@let f64 %other = -%single
@end
@let i1(index) %is_first = %column == 0
@let f64 %half = %is_first ? %other : %single
@let f64 %either = %is_alone ? %half : %own
  linalg.yield %either : f64
} -> ${F}
@if has(Z)
@do finish_rows("%pair", rows, n, 2, how, "%decided#1", Z)
@end
%best = linalg.copy ins(%decided#0 : ${tensor([rows], "i64")}) outs(%best_empty : ${tensor([rows], "i64")}) -> ${tensor([rows], "i64")}
@end
@if has(Y)
@do label_rows("%best", rows, n, labels, Y)
@end
