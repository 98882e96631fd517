// out, a result of the node, = rows of `count` scores (f64), transformed as `how` says, as numbers of its
// type. rows: how many there are, none where that is not known; n: the same as an index. plain: a tensor
// of i1 that says on which rows softmax does not act, or none.
@macro scores, rows, n, count, how, plain, out
@set F = tensor([rows, count], "f64")
@set V = tensor([rows], "f64")
@set sizes = known(rows) ? [] : [n]
@set softens = how == "SOFTMAX" or how == "SOFTMAX_ZERO"
@if softens
%per_row = tensor.empty(${sizes}) : ${V}
@let f64 %least = least
@let f64 %none = 0
%lowest = linalg.fill ins(%least : f64) outs(%per_row : ${V}) -> ${V}
%largest = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
    iterator_types = ["parallel", "reduction"]}
    ins(${scores} : ${F}) outs(%lowest : ${V}) {
^bb0(%score: f64, %so_far: f64):
@let f64 %larger = %score > %so_far ? %score : %so_far
  linalg.yield %larger : f64
} -> ${V}
%raised_to = tensor.empty(${sizes}) : ${F}
%raised = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(${scores}, %largest : ${F}, ${V}) outs(%raised_to : ${F}) {
^bb0(%one: f64, %most: f64, %old: f64):
@let f64 %power = exp(%one - %most)
@if how == "SOFTMAX_ZERO"
// Zeros stay: they are the classes without a score.
@let f64 %kept = %one * exp(-%most)
@let f64 %either = abs(%one) <= 1e-7 ? %kept : %power
  linalg.yield %either : f64
@else
  linalg.yield %power : f64
@end
} -> ${F}
%zeros = linalg.fill ins(%none : f64) outs(%per_row : ${V}) -> ${V}
%sums = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%raised : ${F}) outs(%zeros : ${V}) {
^bb0(%term: f64, %sum: f64):
@let f64 %next = %sum + %term
  linalg.yield %next : f64
} -> ${V}
@end
%out_empty = tensor.empty(${sizes}) : ${type(out)}
@if softens and known(plain)
${out} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%raised, %sums, ${scores}, ${plain} : ${F}, ${V}, ${F}, ${tensor([rows], "i1")}) outs(%out_empty : ${type(out)}) {
^bb0(%part: f64, %whole: f64, %as_is: f64, %stays: i1, %last: ${scalar(out)}):
@let f64 %share = %whole == 0 ? 0.5 : %part / %whole
@let f64 %finished = %stays ? %as_is : %share
@elif softens
${out} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%raised, %sums : ${F}, ${V}) outs(%out_empty : ${type(out)}) {
^bb0(%part: f64, %whole: f64, %last: ${scalar(out)}):
@let f64 %finished = %whole == 0 ? 0.5 : %part / %whole
@else
${out} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(${scores} : ${F}) outs(%out_empty : ${type(out)}) {
^bb0(%part: f64, %last: ${scalar(out)}):
@do finish_score("%part", how, "%finished")
@end
@do cast_element("%finished", "f64", elem(out), true, "up", "%rounded")
  linalg.yield %rounded : ${scalar(out)}
} -> ${type(out)}
