// data with updates written, or joined, at places that differ from their own along one axis only.
@set r = rank(data)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@do check_indices(indices, [size(data, axis)])
@for i in range(r)
@if i != axis
@do check_at_most(indices, i, data, i)
@end
@do check_same(indices, i, updates, i)
@end
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@for i in range(r)
%v${i} = scf.for %i${i} = %c0 to ${size(indices, i)} step %c1 iter_args(%t${i} = ${i == 0 ? "%data" : "%t" + (i - 1)}) -> (${type(data)}) {
@end
  %raw = tensor.extract %indices[${["%i" + i for i in range(r)]}] : ${type(indices)}
@let index %from = index(${elem(indices)} %raw)
@let index %at = %from < 0 ? %from + ${size(data, axis)} : %from
  %new = tensor.extract %updates[${["%i" + i for i in range(r)]}] : ${type(updates)}
@set place = [i == axis ? "%at" : "%i" + i for i in range(r)]
@if attr("reduction") == "none"
  %v${r} = tensor.insert %new into %t${r - 1}[${place}] : ${type(data)}
@else
  %old = tensor.extract %t${r - 1}[${place}] : ${type(data)}
@do joined("%old", "%new", elem(data), attr("reduction"), "%both")
  %v${r} = tensor.insert %both into %t${r - 1}[${place}] : ${type(data)}
@end
@for i in range(r)
  scf.yield %v${r - i} : ${type(data)}
}
@end
%output = tensor.cast %v0 : ${type(data)} to ${type(output)}
