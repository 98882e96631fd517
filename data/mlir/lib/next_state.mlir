// next = a body's result as the state of the next iteration. One that keeps its size stays where it
// is, so that a loop needs no memory beyond that of its first state; what may be a part of
// another state is copied first, since that one is written to as well.
@macro result, input, carried, next, keeps
@set T = type(input)
@if result == input
  ${next} = tensor.cast ${carried} : ${T} to ${T}
@elif not keeps
  ${next} = tensor.cast ${result} : ${type(result)} to ${T}
@else
  %cast = tensor.cast ${result} : ${type(result)} to ${T}
@if not is_computed(result)
  %own = bufferization.alloc_tensor() copy(%cast) : ${T}
@end
@set from = is_computed(result) ? "%cast" : "%own"
  ${next} = bufferization.materialize_in_destination ${from} in ${carried} : (${T}, ${T}) -> ${T}
@end
