// One step of a transform of n: pairs of transforms of length M, of which there are 2 P, become P of
// length 2 M. All sizes but that of lines are numbers. Element k of transform r lies at k * count + r,
// so no order changes: the last step ends in the order of the result.
@macro re, im, M, P, lines, open, T, cosines, sines, n, to_re, to_im
@set flat = tensor([n, lines], T)
@set from = tensor([M, 2, P, lines], T)
@set into = tensor([2, M, P, lines], T)
@set half = tensor([M, P, lines], T)
@set few = tensor([M], T)
@set two = tensor([2], T)
@set length = known(lines) ? lines : open[0]
@for part in ["re", "im"]
%all_${part} = tensor.expand_shape ${part == "re" ? re : im} [[0, 1, 2], [3]] output_shape [${M}, 2, ${P}, ${length}] : ${flat} into ${from}
%a_${part} = tensor.extract_slice %all_${part}[0, 0, 0, 0] [${M}, 1, ${P}, ${length}] [1, 1, 1, 1] : ${from} to ${half}
%b_${part} = tensor.extract_slice %all_${part}[0, 1, 0, 0] [${M}, 1, ${P}, ${length}] [1, 1, 1, 1] : ${from} to ${half}
@end
%c = tensor.extract_slice ${cosines}[0] [${M}] [${P}] : ${tensor([n], T)} to ${few}
%s = tensor.extract_slice ${sines}[0] [${M}] [${P}] : ${tensor([n], T)} to ${few}
%room = tensor.empty(${open}) : ${into}
// The second half of a transform differs from the first by a sign.
@set signs = constant([1, -1], [2], T)
@set each = "affine_map<(h, k, r, l) -> (k, r, l)>"
@set by_k = "affine_map<(h, k, r, l) -> (k)>"
@set whole = "affine_map<(h, k, r, l) -> (h, k, r, l)>"
%both:2 = linalg.generic {
    indexing_maps = [affine_map<(h, k, r, l) -> (h)>, ${[each, each, each, each, by_k, by_k, whole, whole]}],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(${signs}, %a_re, %a_im, %b_re, %b_im, %c, %s : ${[two, half, half, half, half, few, few]})
    outs(%room, %room : ${into}, ${into}) {
^bb0(${["%sign" + ": " + T, "%ar" + ": " + T, "%ai" + ": " + T, "%br" + ": " + T, "%bi" + ": " + T, "%cos" + ": " + T, "%sin" + ": " + T, "%o0" + ": " + T, "%o1" + ": " + T]}):
@let ${T} %x = %ar + %sign * (%cos * %br - %sin * %bi)
@let ${T} %y = %ai + %sign * (%cos * %bi + %sin * %br)
  linalg.yield %x, %y : ${T}, ${T}
} -> (${into}, ${into})
${to_re} = tensor.collapse_shape %both#0 [[0, 1, 2], [3]] : ${into} into ${flat}
${to_im} = tensor.collapse_shape %both#1 [[0, 1, 2], [3]] : ${into} into ${flat}
