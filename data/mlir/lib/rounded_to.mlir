// to, of elements E, = the elements of `from`, a tensor of T with sizes dims; unknown names those
// that are not numbers.
@macro from, dims, unknown, T, E, to
@if T == E
${to} = tensor.cast ${from} : ${tensor(dims, T)} to ${tensor(dims, E)}
@else
@set all = ["d" + i for i in range(len(dims))]
%empty = tensor.empty(${unknown}) : ${tensor(dims, E)}
${to} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(${from} : ${tensor(dims, T)}) outs(%empty : ${tensor(dims, E)}) {
^bb0(%element: ${bare(T)}, %old: ${bare(E)}):
@if T == "f64" and (E == "f16" or E == "bf16")
@let f32 %single = f32(f64 %element)
@let ${E} %less = ${E}(f32 %single)
@else
@let ${E} %less = ${E}(${T} %element)
@end
  linalg.yield %less : ${bare(E)}
} -> ${tensor(dims, E)}
@end
