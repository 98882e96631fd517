// Gives `image`, `image_dims` and `image_sizes`: the tensor x with `value`, the name of a scalar, around its
// spatial axes; x itself where there is nothing to put. x is copied to its place inside, so that
// whatever makes it can be fused with that.
@macro x, T, before, behind, value
@set r = len(before)
@set image = x
@set image_dims = dims(x)
@do numbers(x)
@set image_sizes = numbers
@if len([i for i in range(r) if before[i] == 0 and behind[i] == 0]) < r
@set image_dims = dims(x)[0:2] + [known(dim(x, i + 2)) and before[i] >= 0 and behind[i] >= 0 ? dim(x, i + 2) + before[i] + behind[i] : none for i in range(r)]
@for i in range(r)
@if not known(image_dims[i + 2])
@let index %wide${i} = ${numbers[i + 2]} + ${before[i]} + ${behind[i]}
@end
@end
@set image_sizes = numbers[0:2] + [known(image_dims[i + 2]) ? image_dims[i + 2] : "%wide" + i for i in range(r)]
@set wide = tensor(image_dims, T)
@set at = "[0, 0, " + join(before, ", ") + "][" + join(numbers, ", ") + "][" + join([1 for n in numbers], ", ") + "]"
%empty = tensor.empty(${[image_sizes[i] for i in range(r + 2) if not known(image_dims[i])]}) : ${wide}
%filled = linalg.fill ins(${value} : ${bare(T)}) outs(%empty : ${wide}) -> ${wide}
%inside = tensor.extract_slice %filled${at} : ${wide} to ${type(x)}
%copied = linalg.copy ins(${x} : ${type(x)}) outs(%inside : ${type(x)}) -> ${type(x)}
@set image = fresh()
${image} = tensor.insert_slice %copied into %filled${at} : ${type(x)} into ${wide}
@end
@give image, image_dims, image_sizes
