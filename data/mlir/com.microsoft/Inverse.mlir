// Inverses of square matrices, by Gauss-Jordan elimination with pivots in f64: row operations that
// make a matrix the identity make the identity its inverse.
@set r = rank(X)
@set d = dims(X)
@set kinds = [product(d[0:r - 2]), d[r - 2], d[r - 1]]
@set M = tensor(kinds, "f64")
@do matrices(X, "%all")
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@set n = size(X, r - 1)
@set unknown = (known(kinds[0]) ? [] : ["%all_count"]) + (known(kinds[1]) ? [] : [n]) + (known(kinds[2]) ? [] : [n])
%room = tensor.empty(${unknown}) : ${M}
%identity = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
    iterator_types = ["parallel", "parallel", "parallel"]}
    outs(%room : ${M}) {
^bb0(%old: f64):
  %at_row = linalg.index 1 : index
  %at_column = linalg.index 2 : index
@let i1(index) %on_diagonal = %at_row == %at_column
@let f64 %element = f64(i1 %on_diagonal)
  linalg.yield %element : f64
} -> ${M}
%u0:2 = scf.for %b = %c0 to %all_count step %c1 iter_args(%a0 = %all, %y0 = %identity) -> (${M}, ${M}) {
  %u1:2 = scf.for %c = %c0 to ${n} step %c1 iter_args(%a1 = %a0, %y1 = %y0) -> (${M}, ${M}) {
@do pivot("%a1", M, "%b", "%c", n, "%best")
@do swap_rows("%a1", M, "%b", "%best", "%c", n, "%a2")
@do swap_rows("%y1", M, "%b", "%best", "%c", n, "%y2")
    %diagonal = tensor.extract %a2[%b, %c, %c] : ${M}
@let f64 %scale = 1 / %diagonal
    %u2:2 = scf.for %i = %c0 to ${n} step %c1 iter_args(%a3 = %a2, %y3 = %y2) -> (${M}, ${M}) {
      %left = tensor.extract %a3[%b, %c, %i] : ${M}
      %right = tensor.extract %y3[%b, %c, %i] : ${M}
@let f64 %left_scaled = %left * %scale
@let f64 %right_scaled = %right * %scale
      %a4 = tensor.insert %left_scaled into %a3[%b, %c, %i] : ${M}
      %y4 = tensor.insert %right_scaled into %y3[%b, %c, %i] : ${M}
      scf.yield %a4, %y4 : ${M}, ${M}
    }
    %u3:2 = scf.for %row = %c0 to ${n} step %c1 iter_args(%a5 = %u2#0, %y5 = %u2#1) -> (${M}, ${M}) {
      %factor = tensor.extract %a5[%b, %row, %c] : ${M}
@let i1(index) %other_row = %row != %c
@let i1(f64) %counts = %factor != 0
@let i1 %changes = %other_row && %counts
@let index %end = %changes ? ${n} : 0
      %u4:2 = scf.for %i = %c0 to %end step %c1 iter_args(%a6 = %a5, %y6 = %y5) -> (${M}, ${M}) {
        %a_upper = tensor.extract %a6[%b, %c, %i] : ${M}
        %a_here = tensor.extract %a6[%b, %row, %i] : ${M}
        %y_upper = tensor.extract %y6[%b, %c, %i] : ${M}
        %y_here = tensor.extract %y6[%b, %row, %i] : ${M}
@let f64 %a_less = %a_here - %factor * %a_upper
@let f64 %y_less = %y_here - %factor * %y_upper
        %a7 = tensor.insert %a_less into %a6[%b, %row, %i] : ${M}
        %y7 = tensor.insert %y_less into %y6[%b, %row, %i] : ${M}
        scf.yield %a7, %y7 : ${M}, ${M}
      }
      scf.yield %u4#0, %u4#1 : ${M}, ${M}
    }
    scf.yield %u3#0, %u3#1 : ${M}, ${M}
  }
  scf.yield %u1#0, %u1#1 : ${M}, ${M}
}
@do rounded_to("%u0#1", kinds, unknown, "f64", elem(X), "%narrow")
@do regrouped("%narrow", kinds, scalar(X), Y, dims(Y), r == 2 ? [[range(3), range(2)]] : [[[0], range(r - 2)], [[1], [r - 2]], [[2], [r - 1]]], sizes(X))
