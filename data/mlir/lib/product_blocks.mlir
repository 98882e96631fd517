// C = A B (+ bias, one number a row): m x k times k x n, in blocks. Up to 64 columns of up to 256
// rows of B are packed into panels as wide as a tile; tiles of 6 rows of A then run over the panels
// from the cache. Names of rows of memory: a, b, c and bias; of places of first elements: a_at,
// b_at, c_at, bias_at; numbers or names: m, n, k and the steps from row to row. B may be gathered:
// element (p, j) of it lies at b_at + taps[p] + places[j], two rows of indices; then ldb is none.
@macro T, m, n, k, a, a_at, lda, b, b_at, ldb, taps, places, c, c_at, ldc, bias, bias_at
@set width = T == "f64" or bare(T) == "i64" ? 8 : 16
@set panels = 4
@set depth = k <= 384 ? max(k, 1) : 256
@set one_block = k <= 384
@set V = "vector<" + width + "x" + bare(T) + ">"
@set row = memref([none], T)
@let index %zero = 0
@let index %one = 1
@let index %width = ${width}
@let index %block = ${width * panels}
@let index %depth = ${depth}
@let index %rows = 6
@let index %m = ${m}
@let index %n = ${n}
@let index %k = ${k}
@let index %even = %m - rem(%m, 6)
// A sum over nothing still has to be written.
@let index %steps = max(%k, 1)
%scratch = memref.alloc() {alignment = 64 : i64} : memref<${width * panels * depth}x${bare(T)}>
%panels = memref.cast %scratch : memref<${width * panels * depth}x${bare(T)}> to ${row}
scf.for %j = %zero to %n step %block {
@let index %right = min(%n, %j + %block)
  scf.for %k0 = %zero to %steps step %depth {
@let index %deep = min(%k - %k0, %depth)
@let i1(index) %first = %k0 == 0
    scf.for %q = %j to %right step %width {
@let index %to = (%q - %j) * %depth
@let index %left = %n - %q
@let i1(index) %whole = %left >= %width
@if known(places)
      %places_at = memref.load ${places}[%q] : memref<?xindex>
@let index %last = min(%q + %width, %n) - 1
      %places_end = memref.load ${places}[%last] : memref<?xindex>
@let i1(index) %is_run = %places_end - %places_at == %width - 1
@set runs = "%is_run"
@else
@set runs = "%whole"
@end
      scf.if ${runs} {
        scf.for %p = %zero to %deep step %one {
@let index %pk = %p + %k0
@if known(taps)
          %tap = memref.load ${taps}[%pk] : memref<?xindex>
@let index %from = ${b_at} + %tap + %places_at
@else
@let index %from = ${b_at} + %pk * ${ldb} + %q
@end
          %line = vector.load ${b}[%from] : ${row}, ${V}
@let index %at = %to + %p * %width
          vector.store %line, %panels[%at] : ${row}, ${V}
        }
      } else {
        %columns = arith.minsi %left, %width : index
        scf.for %p = %zero to %deep step %one {
@let index %pk = %p + %k0
@if known(taps)
          %tap = memref.load ${taps}[%pk] : memref<?xindex>
@let index %base = ${b_at} + %tap
@else
@let index %base = ${b_at} + %pk * ${ldb}
@end
@let index %at = %to + %p * %width
          scf.for %i = %zero to %columns step %one {
@let index %column = %q + %i
@if known(places)
            %place = memref.load ${places}[%column] : memref<?xindex>
@let index %from = %base + %place
@else
@let index %from = %base + %column
@end
            %in_x = memref.load ${b}[%from] : ${row}
@let index %at_i = %at + %i
            memref.store %in_x, %panels[%at_i] : ${row}
          }
        }
      }
    }
@if m >= 0
@set pieces = [6] + (m % 6 > 0 ? [m % 6] : [])
@else
@set pieces = [6, 1]
@end
@for rows in pieces
@set is_main = rows == 6
@let index %step${rows} = ${rows}
@if is_main
    scf.for %i = %zero to %even step %step6 {
@else
    scf.for %i = %even to %m step %step${rows} {
@end
@let index %a_at = ${a_at} + %i * ${lda} + %k0
@let index %bias_at = ${known(bias) ? bias_at : 0} + %i
      scf.for %q = %j to %right step %width {
@let index %panel = (%q - %j) * %depth
@let index %left = %n - %q
@let i1(index) %whole = %left >= %width
@let index %c_at = ${c_at} + %i * ${ldc} + %q
@do product_tile(T, width, rows, a, "%a_at", lda, "%panels", "%panel", "%deep", c, "%c_at", ldc, "%whole", "%left", one_block ? none : "%first", bias, "%bias_at")
      }
    }
@end
  }
}
