// to, a tensor of sizes to_dims, is `from`, one of sizes dims, by groups of axes as regroup() gives
// them. Both have elements of MLIR's type T; sizes names an index for each size of `to` that is not
// a number. Nothing is copied.
@macro from, dims, T, to, to_dims, groups, sizes
@set q = len(to_dims)
@set before = [product([dims[i] for i in g[0]]) for g in groups]
@set after = [product([to_dims[j] for j in g[1]]) for g in groups]
@set several = [g for g in groups if len([j for j in g[1] if not known(to_dims[j])]) > 1]
@if 0 in dims or 0 in to_dims
// No elements, and nothing that the sizes beside the 0 tell of each other.
${to} = tensor.empty(${[sizes[j] for j in range(q) if not known(to_dims[j])]}) : ${tensor(to_dims, T)}
@elif several
// tensor.expand_shape is bufferized with one unknown size in a group only.
@for j in range(q)
@let index %z${j} = ${known(to_dims[j]) ? to_dims[j] : sizes[j]}
@end
%to_sizes = tensor.from_elements ${["%z" + j for j in range(q)]} : tensor<${q}xindex>
${to} = tensor.reshape ${from}(%to_sizes) : (${tensor(dims, T)}, tensor<${q}xindex>) -> ${tensor(to_dims, T)}
@elif len(groups) == 0
// One element, of no axes on one side.
%ones = tensor.cast ${from} : ${tensor(dims, T)} to ${tensor([1 for i in dims], T)}
@if len(dims) > 0
%element = tensor.collapse_shape %ones [] : ${tensor([1 for i in dims], T)} into ${tensor([], T)}
@end
@set element = len(dims) > 0 ? "%element" : "%ones"
@if q > 0
%more = tensor.expand_shape ${element} [] output_shape [${[1 for j in to_dims]}] : ${tensor([], T)} into ${tensor([1 for j in to_dims], T)}
@end
${to} = tensor.cast ${q > 0 ? "%more" : element} : ${tensor([1 for j in to_dims], T)} to ${tensor(to_dims, T)}
@else
@set flat = from
@if len(groups) < len(dims)
%flat = tensor.collapse_shape ${from} [${["[" + join(g[0], ", ") + "]" for g in groups]}] : ${tensor(dims, T)} into ${tensor(before, T)}
@set flat = "%flat"
@end
@if len(groups) < q
%fit = tensor.cast ${flat} : ${tensor(before, T)} to ${tensor(after, T)}
${to} = tensor.expand_shape %fit [${["[" + join(g[1], ", ") + "]" for g in groups]}] output_shape [${[known(to_dims[j]) ? to_dims[j] : sizes[j] for j in range(q)]}] : ${tensor(after, T)} into ${tensor(to_dims, T)}
@else
${to} = tensor.cast ${flat} : ${tensor(before, T)} to ${tensor(to_dims, T)}
@end
@end
