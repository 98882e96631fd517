// Elements of data at places that differ from their own along one axis only.
@set r = rank(data)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@do check_indices(indices, [size(data, axis)])
@for i in range(r)
@if i != axis
@do check_at_most(indices, i, data, i)
@end
@end
@set all = ["d" + i for i in range(r)]
%empty = tensor.empty(${[size(indices, i) for i in range(r) if not known(dim(output, i))]}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%indices : ${type(indices)}) outs(%empty : ${type(output)}) {
^bb0(%raw: ${scalar(indices)}, %old: ${scalar(output)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@let index %from = index(${elem(indices)} %raw)
@let index %at = %from < 0 ? %from + ${size(data, axis)} : %from
  %element = tensor.extract %data[${[i == axis ? "%at" : "%d" + i for i in range(r)]}] : ${type(data)}
  linalg.yield %element : ${scalar(output)}
} -> ${type(output)}
