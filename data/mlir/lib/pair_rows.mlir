// pair, a tensor of f64 with two scores for each row, = what two classes get of the one score (f64) that
// a model gives for the second: -s and s, or 1 - s and s if it counts as a probability; LOGISTIC acts on
// -s and s. best, of i64: is s above the border?
@macro scores, rows, n, how, probability, border, pair, best
@set F = tensor([rows, 2], "f64")
@set I = tensor([rows], "i64")
@set S = tensor([rows, 1], "f64")
@set sizes = known(rows) ? [] : [n]
%pair_empty = tensor.empty(${sizes}) : ${F}
${pair} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, 0)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(${scores} : ${S}) outs(%pair_empty : ${F}) {
^bb0(%score: f64, %old: f64):
  %column = linalg.index 1 : index
@if probability and how != "LOGISTIC"
@let f64 %other = 1 - %score
@else
@let f64 %other = -%score
@end
@let i1(index) %is_first = %column == 0
@let f64 %either = %is_first ? %other : %score
  linalg.yield %either : f64
} -> ${F}
%best_empty = tensor.empty(${sizes}) : ${I}
${best} = linalg.generic {
    indexing_maps = [affine_map<(r) -> (r, 0)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
    ins(${scores} : ${S}) outs(%best_empty : ${I}) {
^bb0(%score: f64, %old: i64):
@let i1(f64) %above = %score > ${border}
@let i64 %class = %above ? 1 : 0
  linalg.yield %class : i64
} -> ${I}
