// Slices of data along one axis, by index; an index below zero counts from the end.
@set r = rank(data)
@set q = rank(indices)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set n = dim(data, axis)
@set numbers = const(indices)
// Numbers that are surely inside need no check.
@set sure = known(numbers) and known(n) and len(known(numbers) ? [i for i in numbers if i < 0 - n or i >= n] : []) == 0
@if not sure
@do check_indices(indices, [size(data, axis)])
@end
@set c = rank(output)
@set shape = [i < axis ? size(data, i) : i < axis + q ? size(indices, i - axis) : size(data, i - q + 1) for i in range(c)]
@set unknown = [shape[i] for i in range(c) if not known(dim(output, i))]
@set T = scalar(data)
// One slice of data, as long as it is in all axes but one.
@set one = [i == axis ? 1 : known(dim(data, i)) ? dim(data, i) : size(data, i) for i in range(r)]
@set steps = [1 for i in range(r)]
@if sure and product(dims(indices)) == 1 and q <= 1
// A view.
@set at = numbers[0] < 0 ? numbers[0] + n : numbers[0]
@set view = tensor([dim(data, i) for i in range(r) if i != axis or q == 1], T)
@set view = q == 1 ? tensor([i == axis ? 1 : dim(data, i) for i in range(r)], T) : view
%view = tensor.extract_slice %data[${[i == axis ? at : 0 for i in range(r)]}] [${one}] [${steps}] : ${type(data)} to ${view}
%output = tensor.cast %view : ${view} to ${type(output)}
@elif axis < r - 1
// Slices of more than one element are copied one after the other.
%u${q} = tensor.empty(${unknown}) : ${type(output)}
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@set flat = tensor([dim(data, i) for i in range(r) if i != axis], T)
@for i in range(q)
%v${i} = scf.for %i${i} = %c0 to ${size(indices, i)} step %c1 iter_args(%t${i} = ${i == 0 ? "%u" + q : "%t" + (i - 1)}) -> (${type(output)}) {
@end
  %raw = tensor.extract %indices[${["%i" + i for i in range(q)]}] : ${type(indices)}
@let index %from = index(${elem(indices)} %raw)
@let index %at = %from < 0 ? %from + ${size(data, axis)} : %from
  %slice = tensor.extract_slice %data[${[i == axis ? "%at" : 0 for i in range(r)]}] [${one}] [${steps}] : ${type(data)} to ${flat}
@set onto = [i < axis ? 0 : i < axis + q ? "%i" + (i - axis) : 0 for i in range(c)]
@set part = [i < axis ? one[i] : i < axis + q ? 1 : one[i - q + 1] for i in range(c)]
  %v${q} = tensor.insert_slice %slice into ${q == 0 ? "%u" + q : "%t" + (q - 1)}[${onto}] [${part}] [${[1 for i in range(c)]}] : ${flat} into ${type(output)}
@for i in range(q)
  scf.yield %v${q - i} : ${type(output)}
}
@end
%output = tensor.cast %v0 : ${type(output)} to ${type(output)}
@else
@set all = ["d" + i for i in range(c)]
%empty = tensor.empty(${unknown}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${["d" + (axis + i) for i in range(q)]})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%indices : ${type(indices)}) outs(%empty : ${type(output)}) {
^bb0(%raw: ${scalar(indices)}, %old: ${T}):
@for i in range(axis)
  %d${i} = linalg.index ${i} : index
@end
@let index %from = index(${elem(indices)} %raw)
@let index %at = %from < 0 ? %from + ${size(data, axis)} : %from
  %element = tensor.extract %data[${[i == axis ? "%at" : "%d" + i for i in range(r)]}] : ${type(data)}
  linalg.yield %element : ${T}
} -> ${type(output)}
@end
