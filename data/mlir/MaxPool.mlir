// The largest element of each window; NaN wins. Indices: where it is, the first of equals.
@set kernel = attr("kernel_shape")
@do window(X, Y, kernel, attr("ceil_mode") != 0)
@do numbers(X)
@set sizes = [known(dim(Y, 0)) ? dim(Y, 0) : numbers[0], known(dim(Y, 1)) ? dim(Y, 1) : numbers[1]] + counts
@set T = elem(X)
@let ${T} %least = least
@do padded(X, T, before, behind, "%least")
@if not has(Indices)
@set W = T == "f16" or T == "bf16" ? "f32" : T
@let ${W} %start = least
@do fold_windows(image, image_dims, T, kernel, strides, dilations, counts, sizes, W, "%start", "max", "%folded")
@do rounded("%folded", to_dims, W, sizes, T, "%rounded")
%Y = tensor.cast %rounded : ${tensor(to_dims, T)} to ${type(Y)}
@else
@do max_places(X, image, image_dims, kernel, strides, dilations, before, sizes)
%Y = tensor.cast ${best} : ${tensor(to_dims, T)} to ${type(Y)}
%Indices = tensor.cast ${places} : ${tensor(to_dims, "i64")} to ${type(Indices)}
@end
