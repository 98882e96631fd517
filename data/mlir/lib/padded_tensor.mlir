// Gives `image`, `image_dims` and `image_sizes`: the tensor x, of dims,
// sizes and type T, with `value`, the name of a scalar, around its
// spatial axes; x itself where there is nothing to put. x is copied to its place inside, so that
// whatever makes it can be fused with that.
@macro x, dims, sizes, T, before, behind, value
@set r = len(before)
@set image = x
@set image_dims = dims
@set image_sizes = sizes
@if len([i for i in range(r) if before[i] == 0 and behind[i] == 0]) < r
@set image_dims = dims[0:2] + [known(dims[i + 2]) and before[i] >= 0 and behind[i] >= 0 ? dims[i + 2] + before[i] + behind[i] : none for i in range(r)]
@for i in range(r)
@if not known(image_dims[i + 2])
@let index %wide${i} = ${sizes[i + 2]} + ${before[i]} + ${behind[i]}
@end
@end
@set image_sizes = sizes[0:2] + [known(image_dims[i + 2]) ? image_dims[i + 2] : "%wide" + i for i in range(r)]
@set wide = tensor(image_dims, T)
@set at = "[0, 0, " + join(before, ", ") + "][" + join(sizes, ", ") + "][" + join([1 for n in sizes], ", ") + "]"
%empty = tensor.empty(${[image_sizes[i] for i in range(r + 2) if not known(image_dims[i])]}) : ${wide}
%filled = linalg.fill ins(${value} : ${bare(T)}) outs(%empty : ${wide}) -> ${wide}
%inside = tensor.extract_slice %filled${at} : ${wide} to ${tensor(dims, T)}
%copied = linalg.copy ins(${x} : ${tensor(dims, T)}) outs(%inside : ${tensor(dims, T)}) -> ${tensor(dims, T)}
@set image = fresh()
${image} = tensor.insert_slice %copied into %filled${at} : ${tensor(dims, T)} into ${wide}
@end
@give image, image_dims, image_sizes
