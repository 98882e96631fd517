// Memory for a result of sizes and type T: `memory`, and as one row `row`. lib/finished makes it
// a tensor.
@macro sizes, T
@set memory_dims = [s >= 0 ? s : none for s in sizes]
@set memory = fresh()
@set row = fresh()
@let index %one = 1
@set all = "%one"
@for i in range(len(sizes))
@let index %count${i} = ${all} * ${sizes[i]}
@set all = "%count" + i
@end
${memory} = memref.alloc(${[s for s in sizes if not (s >= 0)]}) {alignment = 64 : i64} : ${memref(memory_dims, T)}
${row} = memref.reinterpret_cast ${memory} to offset: [0], sizes: [${all}], strides: [1] : ${memref(memory_dims, T)} to ${memref([none], T)}
@give memory, memory_dims, row
