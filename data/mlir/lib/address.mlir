// to = the address of the elements of a tensor, for a kernel in C that reads them.
@macro x, dims, T, to
%memory = bufferization.to_memref ${x} read_only : ${memref(dims, T)}
${to} = memref.extract_aligned_pointer_as_index %memory : ${memref(dims, T)} -> index
