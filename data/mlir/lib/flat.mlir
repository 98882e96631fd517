// to = the memory of a tensor, of dims (numbers or none), sizes (numbers or names) and type T, as one
// row.
@macro x, dims, sizes, T, to
@let index %one = 1
@set all = "%one"
@for i in range(len(sizes))
@let index %count${i} = ${all} * ${sizes[i]}
@set all = "%count" + i
@end
%memory = bufferization.to_memref ${x} read_only : ${memref(dims, T)}
${to} = memref.reinterpret_cast %memory to offset: [0], sizes: [${all}], strides: [1] : ${memref(dims, T)} to ${memref([none], T)}
