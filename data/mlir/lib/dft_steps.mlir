// All steps of a transform whose length is known only when it runs, from 2 P transforms of length m
// on; see dft_pair.
@macro re, im, kind, n, m, count, open, T, cosines, sines, roots_kind, to_re, to_im
@let index %zero = 0
@let index %one = 1
@let index %rest = ${n} / ${m}
${to_re}, ${to_im}, %last = scf.for %step = %zero to ${count} step %one iter_args(%re = ${re}, %im = ${im}, %parts = %rest) -> (${kind}, ${kind}, index) {
@let index %P = %parts / 2
@let index %M = ${n} / %parts
  %room = tensor.empty(${open}) : ${kind}
  %next:2 = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} outs(%room, %room : ${kind}, ${kind}) {
  ^bb0(%old_re: ${T}, %old_im: ${T}):
    %i = linalg.index 0 : index
    %line = linalg.index 1 : index
@let index %q = %i / %P
@let index %r = %i - %q * %P
@let i1(index) %is_high = %q >= %M
@let index %less = %q - %M
    %k = arith.select %is_high, %less, %q : index
@let index %a = %k * %parts + %r
@let index %b = %a + %P
@let index %root = %k * %P
    %ar = tensor.extract %re[%a, %line] : ${kind}
    %ai = tensor.extract %im[%a, %line] : ${kind}
    %br = tensor.extract %re[%b, %line] : ${kind}
    %bi = tensor.extract %im[%b, %line] : ${kind}
    %c = tensor.extract ${cosines}[%root] : ${roots_kind}
    %s = tensor.extract ${sines}[%root] : ${roots_kind}
@let ${T} %x = %c * %br - %s * %bi
@let ${T} %y = %c * %bi + %s * %br
@let ${T} %minus_x = -%x
@let ${T} %minus_y = -%y
    %dx = arith.select %is_high, %minus_x, %x : ${T}
    %dy = arith.select %is_high, %minus_y, %y : ${T}
@let ${T} %y_re = %ar + %dx
@let ${T} %y_im = %ai + %dy
    linalg.yield %y_re, %y_im : ${T}, ${T}
  } -> (${kind}, ${kind})
  scf.yield %next#0, %next#1, %P : ${kind}, ${kind}, index
}
