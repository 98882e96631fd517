// Gives `table`, a row of indices: sums of coordinates times steps, over all coordinates of `sizes`
// in order; and `length`, how many there are.
@macro sizes, steps
@do multiplied(sizes)
@set length = product_of
@set table = fresh()
@if length >= 0
%memory = memref.alloc() {alignment = 64 : i64} : memref<${length}xindex>
${table} = memref.cast %memory : memref<${length}xindex> to memref<?xindex>
@else
${table} = memref.alloc(${length}) {alignment = 64 : i64} : memref<?xindex>
@end
@let index %zero = 0
@let index %one = 1
@set at = "%zero"
@set number = "%zero"
@for i in range(len(sizes))
@let index %size${i} = ${sizes[i]}
@end
@for i in range(len(sizes))
scf.for %d${i} = %zero to %size${i} step %one {
@let index %at${i} = ${at} + %d${i} * ${steps[i]}
@let index %number${i} = ${number} * %size${i} + %d${i}
@set at = "%at" + i
@set number = "%number" + i
@end
memref.store ${at}, ${table}[${number}] : memref<?xindex>
@for i in sizes
}
@end
@give table, length
