// best, a tensor of i64, = for each row of `count` scores (f64) the place of the largest, the first of
// several; an i1 tensor `counted` (or none) says which scores take part.
@macro scores, counted, rows, n, count, best
@set F = tensor([rows, count], "f64")
@set V = tensor([rows], "f64")
@set I = tensor([rows], "i64")
@set sizes = known(rows) ? [] : [n]
%values_empty = tensor.empty(${sizes}) : ${V}
%places_empty = tensor.empty(${sizes}) : ${I}
@let f64 %none = 0
@let i64 %nobody = -1
%values = linalg.fill ins(%none : f64) outs(%values_empty : ${V}) -> ${V}
%places = linalg.fill ins(%nobody : i64) outs(%places_empty : ${I}) -> ${I}
%found:2 = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, ${known(counted) ? "affine_map<(r, c) -> (r, c)>, " : ""}affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>],
    iterator_types = ["parallel", "reduction"]}
@if known(counted)
    ins(${scores}, ${counted} : ${F}, ${tensor([rows, count], "i1")}) outs(%values, %places : ${V}, ${I}) {
^bb0(%score: f64, %counts: i1, %value: f64, %place: i64):
@else
    ins(${scores} : ${F}) outs(%values, %places : ${V}, ${I}) {
^bb0(%score: f64, %value: f64, %place: i64):
@let i1 %counts = true
@end
  %at = linalg.index 1 : index
@let i64 %here = i64(index %at)
@let i1(f64) %larger = %score > %value
@let i1(i64) %first = %place < 0
@let i1 %either = or(%larger, %first)
@let i1 %takes = and(%either, %counts)
@let f64 %next_value = %takes ? %score : %value
@let i64 %next_place = %takes ? %here : %place
  linalg.yield %next_value, %next_place : f64, i64
} -> (${V}, ${I})
%best_empty = tensor.empty(${sizes}) : ${I}
${best} = linalg.generic {
    indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
    ins(%found#1 : ${I}) outs(%best_empty : ${I}) {
^bb0(%chosen: i64, %old: i64):
@let i64 %from_zero = %chosen < 0 ? 0 : %chosen
  linalg.yield %from_zero : i64
} -> ${I}
