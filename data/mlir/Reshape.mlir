// The same elements under other sizes: 0 is the size of data at that place, -1 what is left.
@set r = rank(data)
@set q = rank(reshaped)
@set grouping = regroup(data, reshaped)
@set target = const(shape)
@set open = [j for j in range(q) if not known(dim(reshaped, j))]
@if open or not grouping[1] or not known(target)
@if not known(target)
@do check_length(shape, q)
@end
@for j in range(q)
@if known(target)
@let index %raw${j} = ${target[j]}
@else
%at${j} = arith.constant ${j} : index
%asked${j} = tensor.extract %shape[%at${j}] : ${type(shape)}
@let index %raw${j} = index(i64 %asked${j})
@end
// Sizes that are taken over are left out on both sides, so that what is left is known beside a size of 0 too.
@if attr("allowzero") == 0 and j < r
@let index %wanted${j} = %raw${j} == 0 ? ${size(data, j)} : %raw${j}
@let index %factor${j} = %raw${j} == 0 ? 1 : %raw${j} == -1 ? 1 : %raw${j}
@let index %part${j} = %raw${j} == 0 ? 1 : ${size(data, j)}
@else
@let index %wanted${j} = %raw${j}
@let index %factor${j} = %wanted${j} == -1 ? 1 : %wanted${j}
@end
@end
@set parts = [attr("allowzero") == 0 and i < q ? "%part" + i : size(data, i) for i in range(r)]
@let index %others = ${join(["1"] + ["%factor" + j for j in range(q)], " * ")}
@let index %left = ${join(["1"] + parts, " * ")} / max(%others, 1)
@for j in range(q)
@let index %size${j} = %wanted${j} == -1 ? %left : %wanted${j}
@end
@do check_sizes(data, ["%size" + j for j in range(q)], dims(reshaped))
@end
@do regrouped(data, dims(data), scalar(data), reshaped, dims(reshaped), grouping[0], ["%size" + j for j in range(q)])
