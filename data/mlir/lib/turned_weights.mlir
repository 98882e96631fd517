// to = the weights w (channels of x, channels of y of a group, kernel..) of a transposed convolution
// as those of a plain one: (channels of y, channels of x of a group, kernel.. backwards). Gives
// turned_dims and turned_sizes.
@macro w, to
@set groups = attr("group")
@set r = rank(w)
@do numbers(w)
@let index %each_out = ${numbers[1]}
@if numbers[0] >= 0 and numbers[1] >= 0
@set turned_sizes = [numbers[1] * groups, numbers[0] / groups] + numbers[2:]
@else
@let index %all_out = %each_out * ${groups}
@let index %each_in = ${numbers[0]} / ${groups}
@set turned_sizes = ["%all_out", "%each_in"] + numbers[2:]
@end
@let index %group_in = ${turned_sizes[1]}
@set turned_dims = [s >= 0 ? s : none for s in turned_sizes]
@set all = ["d" + i for i in range(r)]
%empty = tensor.empty(${[s for s in turned_sizes if not (s >= 0)]}) : ${tensor(turned_dims, elem(w))}
${to} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    outs(%empty : ${tensor(turned_dims, elem(w))}) {
^bb0(%old: ${scalar(w)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@let index %from0 = %d0 / %each_out * %group_in + %d1
@let index %from1 = rem(%d0, %each_out)
@for i in range(2, r)
@let index %from${i} = ${numbers[i]} - 1 - %d${i}
@end
  %in_x = tensor.extract ${w}[${["%from" + i for i in range(r)]}] : ${type(w)}
  linalg.yield %in_x : ${scalar(w)}
} -> ${tensor(turned_dims, elem(w))}
@give turned_dims, turned_sizes
