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
@set row = has(C) ? (rank(C) == 1 ? same(C, 0, Y, 1) : rank(C) == 2 and dim(C, 0) == 1 and same(C, 1, Y, 1)) : false
@set W = is_float(A) and (T == "f16" or T == "bf16") ? "f32" : T
@if is_float(A) and not pure
@do address(A, dims(A), T, "%a")
@do address(B, dims(B), T, "%b")
@set bias = 0
@if plain and row
@do address(C, dims(C), T, "%c")
@set bias = "%c"
@end
@do result_address(sizes, T)
@do scratch("%scratch", "%scratch_bytes")
@do call_kernel("cameo_product_" + T, ["%a", "%b", address, m, n, k, ta ? 1 : k, ta ? m : 1, tb ? 1 : n, tb ? k : 1, bias, 0, 0, "%scratch", "%scratch_bytes"], 2)
@set held = T
@else
@do converted(A, dims(A), as, T, W)
@do turned(value, dims(A), as, W, ta)
@do flat(value, value_dims, value_sizes, W, "%a")
@do converted(B, dims(B), bs, T, W)
@do turned(value, dims(B), bs, W, tb)
@do flat(value, value_dims, value_sizes, W, "%b")
@do fresh_memory(sizes, W)
@let index %zero = 0
@do product_blocks(W, m, n, k, "%a", "%zero", k, "%b", "%zero", n, none, none, row_memory, "%zero", n, none, 0)
@set held = W
@end
