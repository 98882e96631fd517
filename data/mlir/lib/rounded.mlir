// to = the tensor `from` of sizes and type W as one of type T.
@macro from, dims, W, sizes, T, to
@if W == T
@set to_type = tensor(dims, T)
${to} = tensor.cast ${from} : ${to_type} to ${to_type}
@else
@set all = ["d" + i for i in range(len(dims))]
%empty = tensor.empty(${[sizes[i] for i in range(len(dims)) if not known(dims[i])]}) : ${tensor(dims, T)}
${to} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for d in dims]}]}
    ins(${from} : ${tensor(dims, W)}) outs(%empty : ${tensor(dims, T)}) {
^bb0(%in_x: ${bare(W)}, %old: ${bare(T)}):
@let ${T} %less = ${T}(${W} %in_x)
  linalg.yield %less : ${bare(T)}
} -> ${tensor(dims, T)}
@end
