// The product of codes A and B, less their zero points (or none), in i32. Gives `sums`, a tensor,
// sum_sizes and sum_dims. A zero point of A is one number or goes by rows, one of B by columns.
@macro A, B, a_zero, b_zero, Y
@do product_shape(A, B, Y)
@set ra = rank(A)
@set rb = rank(B)
@set za = known(a_zero) ? rank(a_zero) : 0
@set zb = known(b_zero) ? rank(b_zero) : 0
@if za > ra or zb > max(rb, 1)
@refuse "a zero point has more axes than its matrices"
@end
@do numbers(A)
@set a_sizes = numbers
@do numbers(B)
@set b_sizes = numbers
// By which axes of its matrix a zero point goes along its own.
@set a_axes = za == 1 ? [ra > 1 ? ra - 2 : none] : [j == za - 1 ? none : j + ra - za for j in range(za)]
@set b_axes = zb == 1 ? [rb > 1 ? rb - 1 : none] : [j == zb - 2 ? none : j + rb - zb for j in range(zb)]
@do zero_check(a_zero, a_axes, a_sizes)
@do zero_check(b_zero, b_axes, b_sizes)
// The kernel knows zero points by rows and columns, not by batches.
@set a_flat = za < 2 and not (len(batch) == 0 and ra > 2)
@set a_flat = a_flat or (known(a_zero) and product([d for d in dims(a_zero)]) == 1) or not known(a_zero)
@set b_flat = zb < 2 or product([d for d in dims(b_zero)]) == 1
@if not pure and a_flat and b_flat
@do address(A, dims(A), elem(A), "%in_a")
@do address(B, dims(B), elem(B), "%in_b")
@set a_step = 0
@set b_step = 0
@if known(a_zero)
@do address(a_zero, dims(a_zero), elem(a_zero), "%a_zero")
@if za == 1
@do numbers(a_zero)
@let index %a_step = ${numbers[0]} == 1 ? 0 : 1
@set a_step = "%a_step"
@end
@end
@if known(b_zero)
@do address(b_zero, dims(b_zero), elem(b_zero), "%b_zero")
@if zb == 1
@do numbers(b_zero)
@let index %b_step = ${numbers[0]} == 1 ? 0 : 1
@set b_step = "%b_step"
@end
@end
@do result_address(sizes, "i32")
@do scratch("%scratch", "%scratch_bytes")
@do batches(batch, a_steps, b_steps, m, n)
@let index %a_batch = %in_a + ${a_at}
@let index %b_batch = %in_b + ${b_at}
@let index %c_batch = ${address} + ${c_at} * 4
@do call_kernel("cameo_product_i8", ["%a_batch", "%b_batch", "%c_batch", m, n, k, k, 1, n, 1, is_unsigned(A) ? 0 : 1, is_unsigned(B) ? 0 : 1, known(a_zero) ? "%a_zero" : 0, a_step, known(b_zero) ? "%b_zero" : 0, b_step, "%scratch", "%scratch_bytes"], none)
@do end_batches(batch)
@else
@do widened(A, a_zero, a_axes, "%a_wide")
@do widened(B, b_zero, b_axes, "%b_wide")
@do flat("%a_wide", dims(A), a_sizes, "i32", "%in_a")
@do flat("%b_wide", dims(B), b_sizes, "i32", "%in_b")
@do fresh_memory(sizes, "i32")
@do batches(batch, a_steps, b_steps, m, n)
@do product("i32", m, n, k, "%in_a", a_at, "%in_b", b_at, row, c_at)
@do end_batches(batch)
@end
@set sum_sizes = sizes
@set sum_dims = memory_dims
@set sums = fresh()
${sums} = bufferization.to_tensor ${memory} restrict writable : ${memref(memory_dims, "i32")}
@give sums, sum_sizes, sum_dims
