// Slices of data, each by a tuple of indices into the axes behind the batch axes.
@set r = rank(data)
@set q = rank(indices)
@set b = attr("batch_dims")
@set m = dim(indices, q - 1)
@if not known(m)
@refuse "the length of its index tuples is not known"
@end
@if m > 0
@do check_indices(indices, [size(data, b + k) for k in range(m)])
@end
@for i in range(b)
@do check_same(indices, i, data, i)
@end
@set c = rank(output)
@set all = ["d" + i for i in range(c)]
@set shape = [i < q - 1 ? size(indices, i) : size(data, b + m + i - (q - 1)) for i in range(c)]
%empty = tensor.empty(${[shape[i] for i in range(c) if not known(dim(output, i))]}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    outs(%empty : ${type(output)}) {
^bb0(%old: ${scalar(output)}):
@for i in range(c)
  %d${i} = linalg.index ${i} : index
@end
@for k in range(m)
  %k${k} = arith.constant ${k} : index
  %raw${k} = tensor.extract %indices[${["%d" + i for i in range(q - 1)] + ["%k" + k]}] : ${type(indices)}
@let index %from${k} = index(i64 %raw${k})
@let index %at${k} = %from${k} < 0 ? %from${k} + ${size(data, b + k)} : %from${k}
@end
  %element = tensor.extract %data[${["%d" + i for i in range(b)] + ["%at" + k for k in range(m)] + ["%d" + i for i in range(q - 1, c)]}] : ${type(data)}
  linalg.yield %element : ${scalar(output)}
} -> ${type(output)}
