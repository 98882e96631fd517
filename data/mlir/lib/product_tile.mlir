// Some rows of C times the columns of a panel, in registers: C[i.., j..] = or += A[i.., ..] panel.
// a_at, c_at: names of the places of the tile's first elements; panel_at that of the panel. full:
// name of a truth, the panel has all its columns (else `columns`, by a mask). first: name of a
// truth, or none: C is written, begun with the bias, and not added to.
@macro T, width, rows, a, a_at, lda, panel, panel_at, depth, c, c_at, ldc, full, columns, first, bias, bias_at
@set V = "vector<" + width + "x" + bare(T) + ">"
@set all = ["%x" + i for i in range(rows)]
@set types = join([V for i in range(rows)], ", ")
@let index %zero = 0
@let index %one = 1
@for i in range(rows)
@let index %a${i} = ${a_at} + ${i} * ${lda}
@let index %c${i} = ${c_at} + ${i} * ${ldc}
@end
%mask = vector.create_mask ${columns} : vector<${width}xi1>
%none = arith.constant dense<${literal(0, T)}> : ${V}
@if known(first)
%start:${rows} = scf.if ${first} -> (${types}) {
@end
@if known(bias)
@for i in range(rows)
@let index %b${i} = ${bias_at} + ${i}
%bias${i} = memref.load ${bias}[%b${i}] : ${memref([none], T)}
%begun${i} = vector.broadcast %bias${i} : ${bare(T)} to ${V}
@end
@end
@set begun = [known(bias) ? "%begun" + i : "%none" for i in range(rows)]
@if known(first)
  scf.yield ${begun} : ${types}
} else {
  %old:${rows} = scf.if ${full} -> (${types}) {
@for i in range(rows)
    %whole${i} = vector.load ${c}[%c${i}] : ${memref([none], T)}, ${V}
@end
    scf.yield ${["%whole" + i for i in range(rows)]} : ${types}
  } else {
@for i in range(rows)
    %part${i} = vector.maskedload ${c}[%c${i}], %mask, %none : ${memref([none], T)}, vector<${width}xi1>, ${V} into ${V}
@end
    scf.yield ${["%part" + i for i in range(rows)]} : ${types}
  }
  scf.yield ${["%old" + "#" + i for i in range(rows)]} : ${types}
}
@set begun = ["%start" + "#" + i for i in range(rows)]
@end
%sums:${rows} = scf.for %p = %zero to ${depth} step %one iter_args(${["%x" + i + " = " + begun[i] for i in range(rows)]}) -> (${types}) {
@let index %row = ${panel_at} + %p * ${width}
  %line = vector.load ${panel}[%row] : ${memref([none], T)}, ${V}
@for i in range(rows)
@let index %at${i} = %a${i} + %p
  %one${i} = memref.load ${a}[%at${i}] : ${memref([none], T)}
  %all${i} = vector.broadcast %one${i} : ${bare(T)} to ${V}
@if T == "f32" or T == "f64"
  %term${i} = arith.mulf %all${i}, %line fastmath<contract> : ${V}
  %sum${i} = arith.addf %x${i}, %term${i} fastmath<contract> : ${V}
@else
  %term${i} = arith.muli %all${i}, %line : ${V}
  %sum${i} = arith.addi %x${i}, %term${i} : ${V}
@end
@end
  scf.yield ${["%sum" + i for i in range(rows)]} : ${types}
}
scf.if ${full} {
@for i in range(rows)
  vector.store %sums#${i}, ${c}[%c${i}] : ${memref([none], T)}, ${V}
@end
} else {
@for i in range(rows)
  vector.maskedstore ${c}[%c${i}], %mask, %sums#${i} : ${memref([none], T)}, vector<${width}xi1>, ${V}
@end
}
