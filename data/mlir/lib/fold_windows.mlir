// to = for each window of the image the sum of its terms ("sum", "magnitude", "square", "power") or
// its largest element ("max"), begun with `start`, the name of a scalar of type W. T is the type of
// the image's elements. Windows of a row are next to each other in the innermost loop, where they
// become vectors.
@macro image, image_dims, T, kernel, strides, dilations, counts, sizes, W, start, how, to
@set r = len(kernel)
@set loops = ["d0", "d1"] + ["o" + i for i in range(r - 1)] + ["k" + i for i in range(r)] + ["o" + (r - 1)]
@set places = ["d0", "d1"] + ["o" + i + " * " + strides[i] + " + k" + i + " * " + dilations[i] for i in range(r)]
@set to_dims = [s >= 0 ? s : none for s in sizes]
%windows = tensor.empty(${[]}) : ${tensor(kernel, "i8")}
%empty = tensor.empty(${[s for s in sizes if not (s >= 0)]}) : ${tensor(to_dims, W)}
%filled = linalg.fill ins(${start} : ${bare(W)}) outs(%empty : ${tensor(to_dims, W)}) -> ${tensor(to_dims, W)}
@if how == "power"
@let ${W} %p = ${float(attr("p"))}
@end
${to} = linalg.generic {
    indexing_maps = [affine_map<(${loops}) -> (${places})>, affine_map<(${loops}) -> (${["k" + i for i in range(r)]})>,
                     affine_map<(${loops}) -> (d0, d1, ${["o" + i for i in range(r)]})>],
    iterator_types = ["parallel", "parallel", ${[quote("parallel") for i in range(r - 1)] + [quote("reduction") for i in range(r)]}, "parallel"]}
    ins(${image}, %windows : ${tensor(image_dims, T)}, ${tensor(kernel, "i8")}) outs(%filled : ${tensor(to_dims, W)}) {
^bb0(%in_x: ${bare(T)}, %unread: i8, %so_far: ${bare(W)}):
@if T == W
@set v = "%in_x"
@else
@let ${W} %wide = ${W}(${T} %in_x)
@set v = "%wide"
@end
@if how == "max"
@let ${W} %next = max(%so_far, ${v})
@elif how == "sum"
@let ${W} %next = %so_far + ${v}
@elif how == "magnitude"
@let ${W} %next = %so_far + abs(${v})
@elif how == "square"
@let ${W} %next = %so_far + ${v} * ${v}
@else
@let ${W} %next = %so_far + pow(abs(${v}), %p)
@end
  linalg.yield %next : ${bare(W)}
} -> ${tensor(to_dims, W)}
@give to_dims
