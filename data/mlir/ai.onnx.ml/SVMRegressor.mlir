// A sum of kernels of a row with support vectors, or a linear form where there are none.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set rho = attr("rho")
@set coefficients = attr("coefficients")
@set vectors = attr("n_supports")
@set S = tensor([rows, 1], "f64")
@if vectors == 0
@do linear_rows(X, rows, n, coefficients, 1, [rho[0]], "%sums")
@else
@do kernel_rows(X, rows, n, attr("support_vectors"), vectors, attr("kernel_type"), attr("kernel_params"), "%kernels")
@set weights = constant(coefficients, [vectors], "f32")
  %start = arith.constant ${literal(float(rho[0]), "f64")} : f64
%sums_empty = tensor.empty(${known(rows) ? [] : [n]}) : ${S}
%begun = linalg.fill ins(%start : f64) outs(%sums_empty : ${S}) -> ${S}
%sums = linalg.generic {
    indexing_maps = [affine_map<(r, v) -> (r, v)>, affine_map<(r, v) -> (v)>, affine_map<(r, v) -> (r, 0)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%kernels, ${weights} : ${tensor([rows, vectors], "f64")}, ${tensor([vectors], "f32")}) outs(%begun : ${S}) {
^bb0(%kernel: f64, %weight: f32, %so_far: f64):
@let f64 %next = %so_far + %kernel * f64(f32 %weight)
  linalg.yield %next : f64
} -> ${S}
@end
%empty = tensor.empty(${known(rows) ? [] : [n]}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%sums : ${S}) outs(%empty : ${type(Y)}) {
^bb0(%sum: f64, %old: f32):
@if attr("one_class") != 0
@let f64 %side = %sum > 0 ? 1 : -1
@let f32 %y = f32(f64 %side)
@else
@let f32 %y = f32(f64 %sum)
@end
  linalg.yield %y : f32
} -> ${type(Y)}
