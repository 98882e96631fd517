// re and im, tensors of type `kind` and sizes n and lines, with the signal that a tensor of rows and
// lanes holds along an axis: cut, or filled up with zeros. Folded: the second half is the first
// in reverse and conjugate, as the spectrum of a real signal is.
@macro rows, rows_kind, E, T, kind, open, n, have, inner, lanes, folded, re, im
%room = tensor.empty(${open}) : ${kind}
@let index %half = ${n} / 2 + 1
@let index %some = ${folded ? "min(" + have + ", " + "%half" + ")" : have}
@let index %one = 1
@let index %zero = 0
@let index %lane = ${lanes} - 1
@let i1(index) %is_complex = ${lanes} == 2
@let index %middle = ${n} - ${n} / 2
${re}, ${im} = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]} outs(%room, %room : ${kind}, ${kind}) {
^bb0(%old_re: ${T}, %old_im: ${T}):
  %i = linalg.index 0 : index
  %line = linalg.index 1 : index
@let index %at = ${folded ? "%i" + " < " + "%half" + " ? " + "%i" + " : " + n + " - " + "%i" : "%i"}
@let i1(index) %inside = %at < %some
@let index %safe = min(%at, ${have} - 1)
@let index %outer = %line / ${inner}
@let index %row = (%outer * ${have} + %safe) * ${inner} + (%line - %outer * ${inner})
  %x = tensor.extract ${rows}[%row, %zero] : ${rows_kind}
  %y = tensor.extract ${rows}[%row, %lane] : ${rows_kind}
@let ${T} %none = 0
@let ${T} %real = ${T}(${E} %x)
@let ${T} %imaginary = ${T}(${E} %y)
  %a = arith.select %inside, %real, %none : ${T}
  %has_both = arith.andi %inside, %is_complex : i1
  %b = arith.select %has_both, %imaginary, %none : ${T}
@if folded
// A real signal has no imaginary part at zero, nor in the middle.
@let i1(index) %is_mirrored = %i >= %half
@let i1(index) %is_lone = %i == 0 || %i == %middle && %middle + %middle == ${n}
@let ${T} %negative = -%b
  %c = arith.select %is_mirrored, %negative, %b : ${T}
  %d = arith.select %is_lone, %none, %c : ${T}
@end
  linalg.yield %a, ${folded ? "%d" : "%b"} : ${T}, ${T}
} -> (${kind}, ${kind})
