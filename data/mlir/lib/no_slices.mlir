// to = a tensor of elements of type T without slices along an axis, whose sizes a loop will change.
// They are not constants for MLIR, which would take those of a first state for those of all.
@macro dims, T, to
@for a in range(len(dims))
@let index %size${a} = ${known(dims[a]) ? dims[a] : 0}
@end
%nothing = tensor.empty() : ${tensor([0], T)}
%sizes = tensor.from_elements ${["%size" + a for a in range(len(dims))]} : tensor<${len(dims)}xindex>
${to} = tensor.reshape %nothing(%sizes) : (${tensor([0], T)}, tensor<${len(dims)}xindex>) -> ${tensor(dims, T)}
