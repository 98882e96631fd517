// Elements put back where MaxPool found them, zeros elsewhere. Indices count in the tensor that was
// pooled, whose sizes follow from the windows; output_shape may say larger ones.
@set r = rank(X)
@set kernel = attr("kernel_shape")
@set given = attr("strides")
@set strides = known(given) and len(given) > 0 ? given : [1 for k in kernel]
@set given = attr("pads")
@set pads = known(given) and len(given) > 0 ? given : [0 for i in range(2 * (r - 2))]
@set T = elem(X)
@do numbers(X)
@set x_sizes = numbers
@do numbers(I)
@set i_sizes = numbers
@set from = x_sizes[0:2]
@for i in range(r - 2)
@if x_sizes[i + 2] >= 0
@set from = from + [(x_sizes[i + 2] - 1) * strides[i] - pads[i] - pads[r - 2 + i] + kernel[i]]
@else
@let index %from${i} = (${x_sizes[i + 2]} - 1) * ${strides[i]} - ${pads[i] + pads[r - 2 + i]} + ${kernel[i]}
@set from = from + ["%from" + i]
@end
@end
@set sizes = from
@if has(output_shape)
@do extents(output_shape, r)
@set sizes = extents
@end
@for i in range(r)
@let i1(index) %fits${i} = ${from[i]} >= 0 && ${sizes[i]} >= ${from[i]} && ${x_sizes[i]} == ${i_sizes[i]}
cf.assert %fits${i}, "${place()}: its output_shape is too small, or its indices have another shape than its input"
@end
@do flat(X, dims(X), x_sizes, T, "%values")
@do flat(I, dims(I), i_sizes, "i64", "%indices")
@set known_sizes = [known(dim(output, i)) ? dim(output, i) : sizes[i] for i in range(r)]
@do fresh_memory(known_sizes, T)
@let ${T} %nothing = 0
linalg.fill ins(%nothing : ${bare(T)}) outs(${memory} : ${memref(memory_dims, T)})
@do multiplied(x_sizes)
@let index %n = ${product_of}
@do multiplied(from)
@let index %count = ${product_of}
@let index %zero = 0
@let index %one = 1
@let i1 %yes = true
%inside = scf.for %i = %zero to %n step %one iter_args(%so_far = %yes) -> (i1) {
  %raw = memref.load %indices[%i] : ${memref([none], "i64")}
@let index %at = index(i64 %raw)
@let i1(index) %is_inside = %at >= 0 && %at < %count
  %both = arith.andi %is_inside, %so_far : i1
  scf.yield %both : i1
}
cf.assert %inside, "${place()}: an index is outside the tensor it selects from"
scf.for %i = %zero to %n step %one {
  %raw = memref.load %indices[%i] : ${memref([none], "i64")}
  %element = memref.load %values[%i] : ${memref([none], T)}
@let index %rest${r} = index(i64 %raw)
@for j in range(r)
@set i = r - 1 - j
@let index %d${i} = rem(%rest${i + 1}, ${from[i]})
@let index %rest${i} = %rest${i + 1} / ${from[i]}
@end
@let index %to0 = %d0
@for i in range(1, r)
@let index %to${i} = %to${i - 1} * ${sizes[i]} + %d${i}
@end
  memref.store %element, ${row}[%to${r - 1}] : ${memref([none], T)}
}
@do finished(memory, memory_dims, T, known_sizes, output)
