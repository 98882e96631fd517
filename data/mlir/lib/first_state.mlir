// state = what a state of a loop begins with, in the type T that it is carried in. One that is written
// to in place is a copy: the loop may be run once only, and then nobody copies for it.
@macro initial, T, keeps, state
@if keeps
%cast = tensor.cast ${initial} : ${type(initial)} to ${T}
${state} = bufferization.alloc_tensor() copy(%cast) : ${T}
@else
${state} = tensor.cast ${initial} : ${type(initial)} to ${T}
@end
