// kernels, a tensor of f64, = for each row of features x (an operand; a vector is one row) the kernels with
// `count` support vectors, a list; parameters are gamma, an offset and a degree.
@macro x, rows, n, vectors, count, kind, parameters, kernels
@set features = len(vectors) / count
@set F = tensor([rows, count], "f64")
@set W = tensor([count, features], "f32")
@set sizes = known(rows) ? [] : [n]
@if not known(dim(x, rank(x) - 1))
@set have = size(x, rank(x) - 1)
@let i1(index) %fits = ${have} == ${features}
cf.assert %fits, "${place()}: a row of its input does not have the features that the model is for"
@end
@set table = constant(vectors, [count, features], "f32")
@let f64 %none = 0
%sums_empty = tensor.empty(${sizes}) : ${F}
%begun = linalg.fill ins(%none : f64) outs(%sums_empty : ${F}) -> ${F}
%sums = linalg.generic {
    indexing_maps = [affine_map<(r, v, f) -> (${rank(x) == 2 ? "r, f" : "f"})>, affine_map<(r, v, f) -> (v, f)>, affine_map<(r, v, f) -> (r, v)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(${x}, ${table} : ${type(x)}, ${W}) outs(%begun : ${F}) {
^bb0(%feature: ${scalar(x)}, %number: f32, %sum: f64):
@let f64 %a = f64(${elem(x)} %feature)
@let f64 %b = f64(f32 %number)
@if kind == "RBF"
@let f64 %difference = %a - %b
@let f64 %next = %sum + %difference * %difference
@else
@let f64 %next = %sum + %a * %b
@end
  linalg.yield %next : f64
} -> ${F}
%kernels_empty = tensor.empty(${sizes}) : ${F}
${kernels} = linalg.generic {
    indexing_maps = [affine_map<(r, v) -> (r, v)>, affine_map<(r, v) -> (r, v)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%sums : ${F}) outs(%kernels_empty : ${F}) {
^bb0(%total: f64, %old: f64):
@if kind == "LINEAR"
  linalg.yield %total : f64
@else
  %gamma = arith.constant ${literal(float(parameters[0]), "f64")} : f64
  %offset = arith.constant ${literal(float(parameters[1]), "f64")} : f64
  %degree = arith.constant ${literal(float(parameters[2]), "f64")} : f64
@if kind == "POLY"
@let f64 %kernel = pow(%gamma * %total + %offset, %degree)
@elif kind == "RBF"
@let f64 %kernel = exp(-%gamma * %total)
@else
@let f64 %kernel = tanh(%gamma * %total + %offset)
@end
  linalg.yield %kernel : f64
@end
} -> ${F}
