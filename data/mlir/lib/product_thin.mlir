// C = A B of few rows: rows of B go by once, eight at a time, as they lie in memory. Arguments are
// those of lib/product_blocks, of which B is a matrix and there is no bias.
@macro T, m, n, k, a, a_at, lda, b, b_at, ldb, c, c_at, ldc
@set width = T == "f64" or bare(T) == "i64" ? 8 : 16
@set V = "vector<" + width + "x" + bare(T) + ">"
@set row = memref([none], T)
@set is_float = T == "f32" or T == "f64"
@let index %zero = 0
@let index %one = 1
@let index %eight = 8
@let index %width = ${width}
@let index %m = ${m}
@let index %n = ${n}
@let index %k = ${k}
@let index %even_k = %k - rem(%k, 8)
@let index %even_n = %n - rem(%n, ${width})
@let ${T} %nothing = 0
scf.for %i = %zero to %m step %one {
@let index %a_row = ${a_at} + %i * ${lda}
@let index %c_row = ${c_at} + %i * ${ldc}
  scf.for %j = %zero to %n step %one {
@let index %to = %c_row + %j
    memref.store %nothing, ${c}[%to] : ${row}
  }
@for deep in [8, 1]
@let index %step${deep} = ${deep}
@if deep == 8
  scf.for %p = %zero to %even_k step %step8 {
@else
  scf.for %p = %even_k to %k step %step1 {
@end
@for u in range(deep)
@let index %a_at${u} = %a_row + %p + ${u}
    %left${u} = memref.load ${a}[%a_at${u}] : ${row}
    %lefts${u} = vector.broadcast %left${u} : ${bare(T)} to ${V}
@let index %b_row${u} = ${b_at} + (%p + ${u}) * ${ldb}
@end
@for wide in [true, false]
@set U = wide ? V : bare(T)
@if wide
    scf.for %j = %zero to %even_n step %width {
@else
    scf.for %j = %even_n to %n step %one {
@end
@let index %to = %c_row + %j
@if wide
      %sum0 = vector.load ${c}[%to] : ${row}, ${V}
@else
      %sum0 = memref.load ${c}[%to] : ${row}
@end
@for u in range(deep)
@let index %b_at${u} = %b_row${u} + %j
@if wide
      %right${u} = vector.load ${b}[%b_at${u}] : ${row}, ${V}
@else
      %right${u} = memref.load ${b}[%b_at${u}] : ${row}
@end
@set left = wide ? "%lefts" + u : "%left" + u
@if is_float
      %term${u} = arith.mulf ${left}, %right${u} fastmath<contract> : ${U}
      %sum${u + 1} = arith.addf %sum${u}, %term${u} fastmath<contract> : ${U}
@else
      %term${u} = arith.muli ${left}, %right${u} : ${U}
      %sum${u + 1} = arith.addi %sum${u}, %term${u} : ${U}
@end
@end
@if wide
      vector.store %sum${deep}, ${c}[%to] : ${row}, ${V}
@else
      memref.store %sum${deep}, ${c}[%to] : ${row}
@end
    }
@end
  }
@end
}
