// Puts in axes of size 1.
@set r = rank(data)
@set q = rank(expanded)
@set given = const(axes)
@if known(given)
@set new = [a < 0 ? a + q : a for a in given]
@set old = [j for j in range(q) if not (j in new)]
@set groups = [[[i], range(i == 0 ? 0 : old[i - 1] + 1, i == r - 1 ? q : old[i] + 1)] for i in range(r)]
@set before = [len([k for k in range(j) if not (k in new)]) for j in range(q)]
@do regrouped(data, dims(data), scalar(data), expanded, dims(expanded), groups, [j in new ? "" : size(data, before[j]) for j in range(q)])
@else
@do check_length(axes, q - r)
@do axis_mask(axes, q, "%new")
@let index %place0 = 0
@for j in range(q)
@let index %part${j}_0 = 1
@for i in range(r)
@let i1(index) %here${j}_${i} = !%new${j} && %place${j} == ${i}
@let index %part${j}_${i + 1} = %here${j}_${i} ? ${size(data, i)} : %part${j}_${i}
@end
@let index %place${j + 1} = %new${j} ? %place${j} : %place${j} + 1
@end
@set sizes = ["%part" + j + "_" + r for j in range(q)]
@do check_sizes(data, sizes, dims(expanded))
@set grouping = regroup(data, expanded)
@do regrouped(data, dims(data), scalar(data), expanded, dims(expanded), grouping[0], sizes)
@end
