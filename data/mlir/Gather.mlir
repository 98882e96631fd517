// Slices of data along one axis, by index; an index below zero counts from the end.
@set axis = attr("axis") < 0 ? attr("axis") + rank(data) : attr("axis")
@set r = rank(data)
@set q = rank(indices)
@do check_indices(indices, size(data, axis))
@set shape = [i < axis ? size(data, i) : i < axis + q ? size(indices, i - axis) : size(data, i - q + 1) for i in range(rank(output))]
%empty = tensor.empty(${[shape[i] for i in range(rank(output)) if not known(dim(output, i))]}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(${["d" + i for i in range(rank(output))]}) -> (${["d" + i for i in range(rank(output))]})>],
    iterator_types = [${[quote("parallel") for i in range(rank(output))]}]}
    outs(%empty : ${type(output)}) {
^bb0(%old: ${scalar(output)}):
@for i in range(rank(output))
  %d${i} = linalg.index ${i} : index
@end
  %raw = tensor.extract %indices[${["%d" + (axis + i) for i in range(q)]}] : ${type(indices)}
@let index %from = index(${elem(indices)} %raw)
@set n = size(data, axis)
@let index %at = %from < 0 ? %from + ${n} : %from
  %element = tensor.extract %data[${[i < axis ? "%d" + i : i == axis ? "%at" : "%d" + (i + q - 1) for i in range(r)]}] : ${type(data)}
  linalg.yield %element : ${scalar(output)}
} -> ${type(output)}
