// sums (f64) = scores with base values, a list of none, one for all or one for each of `count` columns,
// where `counted` (i1) says so, or everywhere where that is none.
@macro scores, counted, base, rows, n, count, sums
@set F = tensor([rows, count], "f64")
@set B = tensor([rows, count], "i1")
@set list = constant(len(base) == 0 ? [0.0] : base, [max(len(base), 1)], "f64")
@set marked = known(counted)
%base_empty = tensor.empty(${known(rows) ? [] : [n]}) : ${F}
${sums} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (${len(base) > 1 ? "c" : "0"})>, ${marked ? "affine_map<(r, c) -> (r, c)>, " : ""}affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
@if marked
    ins(${scores}, ${list}, ${counted} : ${F}, ${tensor([max(len(base), 1)], "f64")}, ${B}) outs(%base_empty : ${F}) {
^bb0(%score: f64, %more: f64, %counts: i1, %old: f64):
@let f64 %sum = %counts ? %score + %more : %score
@else
    ins(${scores}, ${list} : ${F}, ${tensor([max(len(base), 1)], "f64")}) outs(%base_empty : ${F}) {
^bb0(%score: f64, %more: f64, %old: f64):
@let f64 %sum = %score + %more
@end
  linalg.yield %sum : f64
} -> ${F}
