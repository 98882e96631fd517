// cosines and sines, tensors of type `kind`: the n-th roots of unity, in the direction of the sign.
// Each has a loop of its own: of both together LLVM makes a call of sincos, which not all have.
@macro n, count, T, kind, sign, cosines, sines
@let f64 %turn = ${sign} * 6.283185307179586476925 / f64(index ${n})
@for word in ["cos", "sin"]
%room_${word} = tensor.empty(${known(count) ? [] : [n]}) : ${kind}
${word == "cos" ? cosines : sines} = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%room_${word} : ${kind}) {
^bb0(%old_${word}: ${T}):
  %i_${word} = linalg.index 0 : index
@let ${T} %root_${word} = ${T}(f64 ${word}(f64(index %i_${word}) * %turn))
  linalg.yield %root_${word} : ${T}
} -> ${kind}
@end
