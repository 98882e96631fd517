// The product of matrices, batch by batch. Halves are added up in f32 and rounded once.
@do product_shape(A, B, Y)
@set T = elem(A)
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
@do product_blocks(W, m, n, k, "%a", a_at, k, "%b", b_at, n, none, none, row, c_at, n, none, 0)
@do end_batches(batch)
@do finished(memory, memory_dims, W, sizes, Y)
