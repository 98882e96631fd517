// alpha A B + beta C, either operand transposed if asked. It is not a core operator, but passes make
// it of MatMul and Add, so that a kernel adds the bias while the sums are in registers.
@do numbers(A)
@set as = numbers
@do numbers(B)
@set bs = numbers
@set ta = attr("transA") != 0
@set tb = attr("transB") != 0
@set m = ta ? as[1] : as[0]
@set k = ta ? as[0] : as[1]
@set n = tb ? bs[0] : bs[1]
@set sizes = [m, n]
@set T = elem(A)
@if not same(A, ta ? 0 : 1, B, tb ? 1 : 0)
@let i1(index) %fits = ${k} == ${tb ? bs[1] : bs[0]}
cf.assert %fits, "${place()}: the columns of the left operand are not as many as the rows of the right one"
@end
@set plain = attr("alpha") == 1 and (not has(C) or attr("beta") == 1)
@set rows_of_c = has(C) ? (rank(C) == 1 ? same(C, 0, Y, 1) : rank(C) == 2 and dim(C, 0) == 1 and same(C, 1, Y, 1)) : false
@set W = is_float(A) and (T == "f16" or T == "bf16") ? "f32" : T
@set is_thin = m >= 0 and m < 4 and not ta and not tb
@set by_kernel = is_float(A) and not pure and not is_thin
@if by_kernel
@do address(A, dims(A), T, "%a")
@set packed = T == "f32" ? panels(B, 1, n, k, tb ? k : 1, tb ? 1 : n, 16) : none
@do address(known(packed) ? packed[0] : B, known(packed) ? [packed[1]] : dims(B), T, "%b")
@set bias = 0
@if plain and rows_of_c
@do address(C, dims(C), T, "%c")
@set bias = "%c"
@end
@do result_address(sizes, T)
@do scratch("%scratch", "%scratch_bytes")
@do call_kernel("cameo_product_" + (known(packed) ? "packed_" : "") + T, ["%a", "%b", address, m, n, k, ta ? 1 : k, ta ? m : 1] + (known(packed) ? [] : [tb ? 1 : n, tb ? k : 1]) + [bias, 0, 0, "%scratch", "%scratch_bytes"], 2)
@set held = T
@else
@do converted(A, dims(A), as, T, W)
@do turned(value, dims(A), as, W, ta)
@do flat(value, [m >= 0 ? m : none, k >= 0 ? k : none], [m, k], W, "%a")
@do converted(B, dims(B), bs, T, W)
@do turned(value, dims(B), bs, W, tb)
@do flat(value, [k >= 0 ? k : none, n >= 0 ? n : none], [k, n], W, "%b")
@do fresh_memory(sizes, W)
@let index %zero = 0
@do product(W, m, n, k, "%a", "%zero", "%b", "%zero", row, "%zero")
@set held = W
@end
@if plain and (not has(C) or (rows_of_c and by_kernel))
@do finished(memory, memory_dims, held, sizes, Y)
@else
%product = bufferization.to_tensor ${memory} restrict writable : ${memref(memory_dims, held)}
%empty = tensor.empty(${[s for s in sizes if not (s >= 0)]}) : ${tensor(memory_dims, T)}
@set read_c = has(C) ? [dim(C, i) == 1 ? "0" : "d" + (i + 2 - rank(C)) for i in range(rank(C))] : []
%sum = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, ${has(C) ? "affine_map<(d0, d1) -> (" + join(read_c, ", ") + ")>, " : ""}affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%product${has(C) ? ", " + C : ""} : ${tensor(memory_dims, held)}${has(C) ? ", " + type(C) : ""}) outs(%empty : ${tensor(memory_dims, T)}) {
^bb0(%p: ${bare(held)}, ${has(C) ? "%c" : "%none"}: ${bare(T)}${has(C) ? ", %old: " + bare(T) : ""}):
@let ${W} %wide = ${W}(${held} %p)
@let ${W} %scaled = %wide * ${is_float(A) ? literal(attr("alpha"), W) : int(attr("alpha"))}
@if has(C)
@let ${W} %term = ${W}(${T} %c)
@let ${W} %both = %scaled + %term * ${is_float(A) ? literal(attr("beta"), W) : int(attr("beta"))}
@let ${T} %out = ${T}(${W} %both)
@else
@let ${T} %out = ${T}(${W} %scaled)
@end
  linalg.yield %out : ${bare(T)}
} -> ${tensor(memory_dims, T)}
%Y = tensor.cast %sum : ${tensor(memory_dims, T)} to ${type(Y)}
@end
