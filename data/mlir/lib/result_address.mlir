// Memory for a result of sizes and type T, that a kernel in C writes: gives `memory`, `memory_dims`
// and the name of its `address`. lib/finished makes it a tensor.
@macro sizes, T
@set memory_dims = [s >= 0 ? s : none for s in sizes]
@set memory = fresh()
@set address = fresh()
${memory} = memref.alloc(${[s for s in sizes if not (s >= 0)]}) {alignment = 64 : i64} : ${memref(memory_dims, T)}
${address} = memref.extract_aligned_pointer_as_index ${memory} : ${memref(memory_dims, T)} -> index
@give memory, memory_dims, address
