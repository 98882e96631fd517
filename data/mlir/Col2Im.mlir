// Columns of windows added back to the image they were cut from. Halves are added up in f32.
@set T = elem(input)
@if not (T in ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@refuse "elements of type " + T + " cannot be added"
@end
@set W = T == "f16" or T == "bf16" ? "f32" : T
@set r = rank(output) - 2
@set given = attr("strides")
@set strides = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("dilations")
@set dilations = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("pads")
@set pads = known(given) and len(given) > 0 ? given : [0 for i in range(2 * r)]
@do numbers(input)
@set in_sizes = numbers
@do extents(image_shape, r)
@set image = extents
@do extents(block_shape, r)
@set kernel = extents
@let index %zero = 0
@let index %one = 1
@for i in range(r)
@let index %kernel${i} = ${kernel[i]}
@let index %image${i} = ${image[i]}
@let index %room${i} = %image${i} + ${pads[i] + pads[r + i]} - (%kernel${i} - 1) * ${dilations[i]} - 1
@let i1(index) %fits${i} = %image${i} >= 1 && %kernel${i} >= 1 && %room${i} >= 0
cf.assert %fits${i}, "${place()}: no window fits into its image"
@let index %count${i} = floordiv(%room${i}, ${strides[i]}) + 1
@end
// Products that have wrapped are none to divide by.
@let f64 %all_taps = ${join(["1"] + ["f64(index " + "%kernel" + i + ")" for i in range(r)], " * ")}
@let f64 %all_columns = ${join(["1"] + ["f64(index " + "%count" + i + ")" for i in range(r)], " * ")}
@let i1(f64) %divides = %all_taps <= 4611686018427387904.0 && %all_columns <= f64(index ${in_sizes[2]})
cf.assert %divides, "${place()}: its columns are not those of its image's windows"
@do multiplied(["%kernel" + i for i in range(r)])
@let index %taps = ${product_of}
@do multiplied(["%count" + i for i in range(r)])
@let index %columns = ${product_of}
@let i1(index) %agrees = rem(${in_sizes[1]}, %taps) == 0 && ${in_sizes[2]} == %columns
cf.assert %agrees, "${place()}: its columns are not those of its image's windows"
@let index %channels = ${in_sizes[1]} / %taps
@set sizes = [known(dim(output, 0)) ? dim(output, 0) : in_sizes[0], known(dim(output, 1)) ? dim(output, 1) : "%channels"] + [known(dim(output, i + 2)) ? dim(output, i + 2) : image[i] for i in range(r)]
@do flat(input, dims(input), in_sizes, T, "%from")
@do fresh_memory(sizes, W)
@let ${W} %nothing = 0
linalg.fill ins(%nothing : ${bare(W)}) outs(${memory} : ${memref(memory_dims, W)})
@let index %planes = ${in_sizes[0]} * %channels
scf.for %plane = %zero to %planes step %one {
@let index %line = %plane
@set line = "%line"
@for i in range(r)
scf.for %k${i} = %zero to %kernel${i} step %one {
@let index %line${i} = ${line} * %kernel${i} + %k${i}
@set line = "%line" + i
@end
@set at = line
@for i in range(r)
scf.for %w${i} = %zero to %count${i} step %one {
@let index %at${i} = ${at} * %count${i} + %w${i}
@set at = "%at" + i
@let index %p${i} = %w${i} * ${strides[i]} + %k${i} * ${dilations[i]} - ${pads[i]}
@let i1(index) %in${i} = %p${i} >= 0 && %p${i} < %image${i}
@end
@set inside = "%in0"
@for i in range(1, r)
@set both = fresh()
${both} = arith.andi ${inside}, %in${i} : i1
@set inside = both
@end
scf.if ${inside} {
@let index %to_plane = %plane
@set to = "%to_plane"
@for i in range(r)
@let index %to${i} = ${to} * %image${i} + %p${i}
@set to = "%to" + i
@end
  %element = memref.load %from[${at}] : ${memref([none], T)}
  %so_far = memref.load ${row}[${to}] : ${memref([none], W)}
@if T == "i1"
  %sum = arith.ori %so_far, %element : i1
@elif T == W
@let ${W} %sum = %so_far + %element
@else
@let ${W} %sum = %so_far + ${W}(${T} %element)
@end
  memref.store %sum, ${row}[${to}] : ${memref([none], W)}
}
@for i in range(2 * r)
}
@end
}
@do finished(memory, memory_dims, W, sizes, output)
