// The norm of each window: the p-th root of the sum of its magnitudes to the power p.
@set kernel = attr("kernel_shape")
@if attr("p") < 1
@refuse "p is " + attr("p") + ", must be at least 1"
@end
@do window(X, Y, kernel, attr("ceil_mode") != 0)
@do numbers(X)
@set sizes = [known(dim(Y, 0)) ? dim(Y, 0) : numbers[0], known(dim(Y, 1)) ? dim(Y, 1) : numbers[1]] + counts
@set T = elem(X)
@set W = T == "f64" ? T : "f32"
@let ${T} %nothing = 0
@let ${W} %start = 0
@do padded(X, T, before, behind, "%nothing")
@set how = attr("p") == 1 ? "magnitude" : attr("p") == 2 ? "square" : "power"
@do fold_windows(image, image_dims, T, kernel, strides, dilations, counts, sizes, W, "%start", how, "%sums")
@set all = ["d" + i for i in range(rank(X))]
%empty = tensor.empty(${[s for s in sizes if not (s >= 0)]}) : ${tensor(to_dims, T)}
%norm = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%sums : ${tensor(to_dims, W)}) outs(%empty : ${tensor(to_dims, T)}) {
^bb0(%sum: ${bare(W)}, %old: ${bare(T)}):
@if how == "magnitude"
@let ${W} %root = %sum
@elif how == "square"
@let ${W} %root = sqrt(%sum)
@else
@let ${W} %root = pow(%sum, ${1.0 / attr("p")})
@end
@if T == W
@set result = "%root"
@else
@let ${T} %less = ${T}(${W} %root)
@set result = "%less"
@end
  linalg.yield ${result} : ${bare(T)}
} -> ${tensor(to_dims, T)}
%Y = tensor.cast %norm : ${tensor(to_dims, T)} to ${type(Y)}
