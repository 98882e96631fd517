// One step of a transform of n: pairs of transforms of length M, of which there are 2 P, become P of
// length 2 M. All sizes are numbers. Element k of transform r lies at k * count + r, so no order
// changes: the last step ends in the order of the result.
@macro re, im, M, P, lines, open, T, cosines, sines, n, to_re, to_im
@set flat = tensor([n, lines], T)
@set from = tensor([M, 2, P, lines], T)
@set into = tensor([2, M, P, lines], T)
@set half = tensor([M, P, lines], T)
@set length = known(lines) ? lines : open[0]
@for part in ["re", "im"]
@set name = part == "re" ? re : im
%all_${part} = tensor.expand_shape ${name} [[0, 1, 2], [3]] output_shape [${M}, 2, ${P}, ${length}] : ${flat} into ${from}
%a_${part} = tensor.extract_slice %all_${part}[0, 0, 0, 0] [${M}, 1, ${P}, ${length}] [1, 1, 1, 1] : ${from} to ${half}
%b_${part} = tensor.extract_slice %all_${part}[0, 1, 0, 0] [${M}, 1, ${P}, ${length}] [1, 1, 1, 1] : ${from} to ${half}
%room_${part} = tensor.empty(${open}) : ${into}
%low_${part} = tensor.extract_slice %room_${part}[0, 0, 0, 0] [1, ${M}, ${P}, ${length}] [1, 1, 1, 1] : ${into} to ${half}
%high_${part} = tensor.extract_slice %room_${part}[1, 0, 0, 0] [1, ${M}, ${P}, ${length}] [1, 1, 1, 1] : ${into} to ${half}
@end
@set roots = tensor([n], T)
@set few = tensor([M], T)
%c = tensor.extract_slice ${cosines}[0] [${M}] [${P}] : ${roots} to ${few}
%s = tensor.extract_slice ${sines}[0] [${M}] [${P}] : ${roots} to ${few}
@set same = "affine_map<(d0, d1, d2) -> (d0, d1, d2)>"
@set by_k = "affine_map<(d0, d1, d2) -> (d0)>"
%r:4 = linalg.generic {
    indexing_maps = [${[same, same, same, same, by_k, by_k, same, same, same, same]}],
    iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%a_re, %a_im, %b_re, %b_im, %c, %s : ${[half, half, half, half, few, few]})
    outs(%low_re, %low_im, %high_re, %high_im : ${[half, half, half, half]}) {
^bb0(${["%ar" + ": " + T, "%ai" + ": " + T, "%br" + ": " + T, "%bi" + ": " + T, "%cos" + ": " + T, "%sin" + ": " + T, "%o0" + ": " + T, "%o1" + ": " + T, "%o2" + ": " + T, "%o3" + ": " + T]}):
@let ${T} %x = %cos * %br - %sin * %bi
@let ${T} %y = %cos * %bi + %sin * %br
@let ${T} %p0 = %ar + %x
@let ${T} %p1 = %ai + %y
@let ${T} %p2 = %ar - %x
@let ${T} %p3 = %ai - %y
  linalg.yield %p0, %p1, %p2, %p3 : ${T}, ${T}, ${T}, ${T}
} -> (${[half, half, half, half]})
@for part in [0, 1]
@set word = part == 0 ? "re" : "im"
%put${part} = tensor.insert_slice %r#${part} into %room_${word}[0, 0, 0, 0] [1, ${M}, ${P}, ${length}] [1, 1, 1, 1] : ${half} into ${into}
%full${part} = tensor.insert_slice %r#${part + 2} into %put${part}[1, 0, 0, 0] [1, ${M}, ${P}, ${length}] [1, 1, 1, 1] : ${half} into ${into}
${part == 0 ? to_re : to_im} = tensor.collapse_shape %full${part} [[0, 1, 2], [3]] : ${into} into ${flat}
@end
