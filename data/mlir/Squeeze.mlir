// Leaves out axes of size 1.
@set r = rank(data)
@set q = rank(squeezed)
@set given = has(axes) ? const(axes) : [i for i in range(r) if dim(data, i) == 1]
@if known(given)
@set gone = [a < 0 ? a + r : a for a in given]
@set stay = [i for i in range(r) if not (i in gone)]
@for i in gone
@if dim(data, i) != 1
@let i1(index) %one${i} = ${size(data, i)} == 1
cf.assert %one${i}, "${place()}: an axis that it leaves out is not of size 1"
@end
@end
// Each axis that stays takes along those before it, the last one those behind it too.
@set groups = [[range(k == 0 ? 0 : stay[k - 1] + 1, k == q - 1 ? r : stay[k] + 1), [k]] for k in range(q)]
@do regrouped(data, dims(data), scalar(data), squeezed, dims(squeezed), groups, [size(data, i) for i in stay])
@else
@do check_length(axes, r - q)
@do axis_mask(axes, r, "%gone")
@do places(["%gone" + i for i in range(r)], sizes(data), q, "%left")
@set sizes = ["%left" + j for j in range(q)]
@do check_sizes(data, sizes, dims(squeezed))
@set grouping = regroup(data, squeezed)
@do regrouped(data, dims(data), scalar(data), squeezed, dims(squeezed), grouping[0], sizes)
@end
