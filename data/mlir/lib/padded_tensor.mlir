// Gives `image`, `image_dims` and `image_sizes`: the tensor x, of dims, sizes and type T, with
// `value`, the name of a scalar, around its spatial axes; x itself where there is nothing to put.
// Rows are copied by loops, which become memcpy.
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
@do flat(x, dims, sizes, T, "%from")
@do fresh_memory(image_sizes, T)
linalg.fill ins(${value} : ${bare(T)}) outs(${memory} : ${memref(memory_dims, T)})
@let index %zero = 0
@let index %one = 1
@let index %planes = ${sizes[0]} * ${sizes[1]}
@for i in range(r)
@let index %size${i} = ${sizes[i + 2]}
@end
scf.for %plane = %zero to %planes step %one {
@set at = "%plane"
@set to = "%plane"
@for i in range(r - 1)
scf.for %d${i} = %zero to %size${i} step %one {
@let index %at${i} = ${at} * %size${i} + %d${i}
@let index %to${i} = ${to} * ${image_sizes[i + 2]} + %d${i} + ${before[i]}
@set at = "%at" + i
@set to = "%to" + i
@end
@let index %at_row = ${at} * %size${r - 1}
@let index %to_row = ${to} * ${image_sizes[r + 1]} + ${before[r - 1]}
  scf.for %j = %zero to %size${r - 1} step %one {
@let index %at_j = %at_row + %j
@let index %to_j = %to_row + %j
    %element = memref.load %from[%at_j] : ${memref([none], T)}
    memref.store %element, ${row}[%to_j] : ${memref([none], T)}
  }
@for i in range(r)
}
@end
@set image = fresh()
${image} = bufferization.to_tensor ${memory} restrict writable : ${memref(memory_dims, T)}
@end
@give image, image_dims, image_sizes
