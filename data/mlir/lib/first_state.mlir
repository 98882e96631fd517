// state = what a state of a loop begins with, in the type T that it is carried in. One that is written
// to in place is a copy: the loop may be run once only, and then nobody copies for it. One whose
// sizes change is not a tensor.cast: MLIR would take its first sizes for those of all.
@macro initial, T, keeps, state
@if keeps
%cast = tensor.cast ${initial} : ${type(initial)} to ${T}
${state} = bufferization.alloc_tensor() copy(%cast) : ${T}
@elif rank(initial) > 0
%sizes = tensor.from_elements ${sizes(initial)} : tensor<${rank(initial)}xindex>
${state} = tensor.reshape ${initial}(%sizes) : (${type(initial)}, tensor<${rank(initial)}xindex>) -> ${T}
@else
${state} = tensor.cast ${initial} : ${type(initial)} to ${T}
@end
