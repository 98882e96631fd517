// cosines and sines, tensors of type `kind`: the n-th roots of unity, in the direction of the sign.
@macro n, count, T, kind, sign, cosines, sines
%room = tensor.empty(${known(count) ? [] : [n]}) : ${kind}
@let f64 %turn = ${sign} * 6.283185307179586476925 / f64(index ${n})
${cosines}, ${sines} = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]} outs(%room, %room : ${kind}, ${kind}) {
^bb0(%old_re: ${T}, %old_im: ${T}):
  %i = linalg.index 0 : index
@let f64 %angle = f64(index %i) * %turn
@let ${T} %c = ${T}(f64 cos(%angle))
@let ${T} %s = ${T}(f64 sin(%angle))
  linalg.yield %c, %s : ${T}, ${T}
} -> (${kind}, ${kind})
