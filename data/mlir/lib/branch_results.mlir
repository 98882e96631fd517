// Ends a branch of If: hands its results over, in the types of the node's.
@macro results, outputs, wanted, places
@for o in wanted
@set T = type(outputs[o])
@if none in dims(outputs[o])
  %y${o} = tensor.cast ${results[o]} : ${type(results[o])} to ${T}
@else
  %cast${o} = tensor.cast ${results[o]} : ${type(results[o])} to ${T}
  %y${o} = bufferization.materialize_in_destination %cast${o} in ${places[o]} : (${T}, ${T}) -> ${T}
@end
@end
  scf.yield ${["%y" + o for o in wanted]} : ${[type(outputs[o]) for o in wanted]}
