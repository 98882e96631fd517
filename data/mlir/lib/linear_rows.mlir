// scores, a tensor of f64, = for each row of features x (an operand; a vector is one row) the products
// with `count` rows of weights, a list, each more than the number in the list `starts`.
@macro x, rows, n, weights, count, starts, scores
@set features = len(weights) / count
@set F = tensor([rows, count], "f64")
@set W = tensor([count, features], "f32")
@set C = tensor([count], "f32")
@set sizes = known(rows) ? [] : [n]
@if not known(dim(x, rank(x) - 1))
@set have = size(x, rank(x) - 1)
@let i1(index) %fits = ${have} == ${features}
cf.assert %fits, "${place()}: a row of its input does not have the features that the model is for"
@end
@set table = constant(weights, [count, features], "f32")
%scores_empty = tensor.empty(${sizes}) : ${F}
@set start = constant(starts, [count], "f32")
%begun = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(${start} : ${C}) outs(%scores_empty : ${F}) {
^bb0(%number: f32, %old: f64):
@let f64 %wide = f64(f32 %number)
  linalg.yield %wide : f64
} -> ${F}
${scores} = linalg.generic {
    indexing_maps = [affine_map<(r, c, f) -> (${rank(x) == 2 ? "r, f" : "f"})>, affine_map<(r, c, f) -> (c, f)>, affine_map<(r, c, f) -> (r, c)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(${x}, ${table} : ${type(x)}, ${W}) outs(%begun : ${F}) {
^bb0(%feature: ${scalar(x)}, %weight: f32, %sum: f64):
@let f64 %next = %sum + f64(${elem(x)} %feature) * f64(f32 %weight)
  linalg.yield %next : f64
} -> ${F}
