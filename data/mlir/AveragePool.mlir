// The mean of each window. Its divisor counts the elements that the window sees, and of the padding
// what count_include_pad asks for.
@set kernel = attr("kernel_shape")
@do window(X, Y, kernel, attr("ceil_mode") != 0)
@do numbers(X)
@set sizes = [known(dim(Y, 0)) ? dim(Y, 0) : numbers[0], known(dim(Y, 1)) ? dim(Y, 1) : numbers[1]] + counts
@set r = len(kernel)
@set T = elem(X)
@set W = T == "f64" ? T : "f32"
@let ${T} %nothing = 0
@let ${W} %start = 0
@do padded(X, T, before, behind, "%nothing")
@do fold_windows(image, image_dims, T, kernel, strides, dilations, counts, sizes, W, "%start", "sum", "%sums")
@set counts_pads = attr("count_include_pad") != 0
// Where each window is whole, or what it lacks is padding that counts, the divisor is a constant.
@set whole = len([i for i in range(r) if behind[i] == 0 and before[i] == 0 or counts_pads and (attr("ceil_mode") == 0 or behind[i] <= after[i])]) == r
@set all = ["d" + i for i in range(r + 2)]
%empty = tensor.empty(${[s for s in sizes if not (s >= 0)]}) : ${tensor(to_dims, T)}
%mean = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%sums : ${tensor(to_dims, W)}) outs(%empty : ${tensor(to_dims, T)}) {
^bb0(%sum: ${bare(W)}, %old: ${bare(T)}):
@let index %taps0 = ${whole ? product(kernel) : 1}
@for i in range(whole ? 0 : r)
  %o${i} = linalg.index ${i + 2} : index
@let index %from${i} = %o${i} * ${strides[i]} - ${before[i]}
@let index %end${i} = min(%from${i} + ${spans[i]}, ${numbers[i + 2]} + ${counts_pads ? after[i] : 0})
@if counts_pads
@let index %first${i} = %from${i}
@else
@let index %first${i} = %from${i} < 0 ? %from${i} + ceildiv(-%from${i}, ${dilations[i]}) * ${dilations[i]} : %from${i}
@end
@let index %taps${i + 1} = %taps${i} * max(ceildiv(%end${i} - %first${i}, ${dilations[i]}), 0)
@end
@let i64 %taps = i64(index %taps${whole ? 0 : r})
@let ${W} %quotient = %sum / ${W}(i64 %taps)
@if T == W
@set result = "%quotient"
@else
@let ${T} %less = ${T}(${W} %quotient)
@set result = "%less"
@end
  linalg.yield ${result} : ${bare(T)}
} -> ${tensor(to_dims, T)}
%Y = tensor.cast %mean : ${tensor(to_dims, T)} to ${type(Y)}
