// The product of matrices, batch by batch. Halves are added up in f32 and rounded once.
@do product_shape(A, B, Y)
@set T = elem(A)
// A few rows are not worth packing B for: the generated loops read it as it lies.
@if is_float(A) and not pure and not (m >= 0 and m < 4)
@do address(A, dims(A), T, "%a")
@set packed = T == "f32" and rank(B) == 2 and batch == [] ? panels(B, 1, n, k, 1, n, 16) : none
@if known(packed)
@do address(packed[0], [packed[1]], T, "%packed")
@do result_address(sizes, T)
@do scratch("%scratch", "%scratch_bytes")
@do call_kernel("cameo_product_packed_f32", ["%a", "%packed", address, m, n, k, k, 1, 0, 0, 0, "%scratch", "%scratch_bytes"], 2)
@else
@do address(B, dims(B), T, "%b")
@do result_address(sizes, T)
@do scratch("%scratch", "%scratch_bytes")
@do batches(batch, a_steps, b_steps, m, n)
@do element_bytes(T)
@let index %a_batch = %a + ${a_at} * ${bytes}
@let index %b_batch = %b + ${b_at} * ${bytes}
@let index %c_batch = ${address} + ${c_at} * ${bytes}
@do call_kernel("cameo_product_" + T, ["%a_batch", "%b_batch", "%c_batch", m, n, k, k, 1, n, 1, 0, 0, 0, "%scratch", "%scratch_bytes"], 2)
@do end_batches(batch)
@end
@do finished(memory, memory_dims, T, sizes, Y)
@else
@set W = T == "f16" or T == "bf16" ? "f32" : T
@do numbers(A)
@set a_sizes = numbers
@do numbers(B)
@set b_sizes = numbers
@do converted(A, dims(A), a_sizes, T, W)
@do flat(value, dims(A), a_sizes, W, "%a")
@do converted(B, dims(B), b_sizes, T, W)
@do flat(value, dims(B), b_sizes, W, "%b")
@do fresh_memory(sizes, W)
@do batches(batch, a_steps, b_steps, m, n)
@do product(W, m, n, k, "%a", a_at, "%b", b_at, row, c_at)
@do end_batches(batch)
@do finished(memory, memory_dims, W, sizes, Y)
@end
