// The transforms of length m of each `parts`-th element, where n = m * parts: by definition. re, im
// and the results have type `kind`; tables are the n-th roots.
@macro re, im, kind, open, m, odd, parts, T, cosines, sines, roots_kind, to_re, to_im
%empty = tensor.empty(${open}) : ${kind}
@let ${T} %none = 0
%clear = linalg.fill ins(%none : ${T}) outs(%empty : ${kind}) -> ${kind}
%span = tensor.empty(${known(odd) ? [] : [m]}) : ${tensor([odd], "i1")}
${to_re}, ${to_im} = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%span : ${tensor([odd], "i1")}) outs(%clear, %clear : ${kind}, ${kind}) {
^bb0(%unused: i1, %sum_re: ${T}, %sum_im: ${T}):
  %i = linalg.index 0 : index
  %line = linalg.index 1 : index
  %q = linalg.index 2 : index
@let index %k = %i / ${parts}
@let index %r = %i - %k * ${parts}
@let index %root = rem(%k * %q, ${m}) * ${parts}
@let index %at = %q * ${parts} + %r
  %c = tensor.extract ${cosines}[%root] : ${roots_kind}
  %s = tensor.extract ${sines}[%root] : ${roots_kind}
  %x = tensor.extract ${re}[%at, %line] : ${kind}
  %y = tensor.extract ${im}[%at, %line] : ${kind}
@let ${T} %next_re = %sum_re + (%c * %x - %s * %y)
@let ${T} %next_im = %sum_im + (%c * %y + %s * %x)
  linalg.yield %next_re, %next_im : ${T}, ${T}
} -> (${kind}, ${kind})
