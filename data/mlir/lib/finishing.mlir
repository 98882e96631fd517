// What a kernel in C is to do with the parts of y that it has finished: gives `other`, the address of
// a tensor that is read besides, and `code`, 2 and that of a function for all that follows y element
// by element (cameo_finish of src/kernels/kernels.h); both are 0 where nothing does. See src/mlir/lowering_finish.c.
@macro y
@set other = 0
@set code = 0
@set rest = finish(y)
@if known(rest)
@set F = "(index, index, index, index, index) -> ()"
@set code = fresh()
%function = func.constant ${rest[0]} : ${F}
%pointer = builtin.unrealized_conversion_cast %function : ${F} to !llvm.ptr
%number = llvm.ptrtoint %pointer : !llvm.ptr to i64
%place = arith.index_cast %number : i64 to index
@let index ${code} = %place + 2
@if has(rest[1])
@set other = fresh()
@do address(rest[1], dims(rest[1]), elem(rest[1]), other)
@end
@end
@give other, code
