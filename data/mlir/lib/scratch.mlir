// to = the address of scratch memory of a kernel, CAMEO_SCRATCH_BYTES of kernels/kernels.h, and
// bytes, how much that is.
@macro to, bytes
%scratch = memref.alloc() {alignment = 64 : i64} : memref<262144xi8>
${to} = memref.extract_aligned_pointer_as_index %scratch : memref<262144xi8> -> index
@let index ${bytes} = 262144
