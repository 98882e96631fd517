// to = the row, from row c on, whose element in column c of matrix b of a, n rows, is the largest.
@macro a, type, b, c, n, to
%c1 = arith.constant 1 : index
@let index %from = ${c} + 1
%first = tensor.extract ${a}[${b}, ${c}, ${c}] : ${type}
@let f64 %first_size = abs(%first)
%found:2 = scf.for %r = %from to ${n} step %c1 iter_args(%best = ${c}, %best_size = %first_size) -> (index, f64) {
  %other = tensor.extract ${a}[${b}, %r, ${c}] : ${type}
@let f64 %other_size = abs(%other)
@let i1(f64) %larger = %other_size > %best_size
@let index %next_best = %larger ? %r : %best
@let f64 %next_size = %larger ? %other_size : %best_size
  scf.yield %next_best, %next_size : index, f64
}
@let index ${to} = %found#0
