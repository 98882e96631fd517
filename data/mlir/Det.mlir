// Determinants, by elimination with pivots in f64.
@set r = rank(X)
@set d = dims(X)
@set kinds = [product(d[0:r - 2]), d[r - 2], d[r - 1]]
@set M = tensor(kinds, "f64")
@set V = tensor([kinds[0]], "f64")
@do matrices(X, "%all")
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@let f64 %one = 1
@set n = size(X, r - 1)
%room = tensor.empty(${known(kinds[0]) ? "" : "%all_count"}) : ${V}
%u0:2 = scf.for %b = %c0 to %all_count step %c1 iter_args(%a0 = %all, %y0 = %room) -> (${M}, ${V}) {
  %u1:2 = scf.for %c = %c0 to ${n} step %c1 iter_args(%a1 = %a0, %det0 = %one) -> (${M}, f64) {
@do pivot("%a1", M, "%b", "%c", n, "%best")
@do swap_rows("%a1", M, "%b", "%best", "%c", n, "%a2")
    %diagonal = tensor.extract %a2[%b, %c, %c] : ${M}
@let i1(index) %moved = %best != %c
@let f64 %sign = %moved ? -%diagonal : %diagonal
// Without a pivot it is 0, whatever follows.
@let i1(f64) %is_zero = %det0 == 0 || %diagonal == 0
@let f64 %det1 = %is_zero ? 0 : %det0 * %sign
@let f64 %divisor = %diagonal == 0 ? 1 : %diagonal
@let index %below = %c + 1
    %u2 = scf.for %row = %below to ${n} step %c1 iter_args(%a3 = %a2) -> (${M}) {
      %head = tensor.extract %a3[%b, %row, %c] : ${M}
@let f64 %factor = %head / %divisor
      %u3 = scf.for %i = %below to ${n} step %c1 iter_args(%a4 = %a3) -> (${M}) {
        %upper = tensor.extract %a4[%b, %c, %i] : ${M}
        %lower = tensor.extract %a4[%b, %row, %i] : ${M}
@let f64 %less = %lower - %factor * %upper
        %a5 = tensor.insert %less into %a4[%b, %row, %i] : ${M}
        scf.yield %a5 : ${M}
      }
      scf.yield %u3 : ${M}
    }
    scf.yield %u2, %det1 : ${M}, f64
  }
  %y1 = tensor.insert %u1#1 into %y0[%b] : ${V}
  scf.yield %u1#0, %y1 : ${M}, ${V}
}
@do rounded_to("%u0#1", [kinds[0]], known(kinds[0]) ? [] : ["%all_count"], "f64", elem(X), "%narrow")
@do regrouped("%narrow", [kinds[0]], scalar(X), Y, dims(Y), r > 2 ? [[[0], range(r - 2)]] : [], [size(X, i) for i in range(r - 2)])
