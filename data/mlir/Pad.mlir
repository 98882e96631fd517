// More at the ends of axes, or less where pads are below zero.
@set r = rank(data)
@set mode = attr("mode")
@set P = const(pads)
@set n = has(axes) ? dim(axes, 0) : r
@if not known(n)
@refuse "the number of its axes is not known"
@end
@set a = has(axes) ? const(axes) : range(r)
@set axes_known = known(a)
@set a = axes_known ? [i < 0 ? i + r : i for i in a] : []
@if not known(P)
@do elements(pads, 2 * n, "%pad")
@end
@if not axes_known
@do elements(axes, n, "%axis")
@do check_axes(n, "%axis", r)
@end
// Of each axis: elements that are left out in front (skip), those of data that stay (inside), where
// the first of them stands (before); numbers or names of indices.
@set skip = []
@set inside = []
@set before = []
@set total = []
@for i in range(r)
@set k = -1
@for j in range(axes_known ? n : 0)
@set k = a[j] == i ? j : k
@end
@if axes_known and k < 0
@set skip = skip + [0]
@set before = before + [0]
@set inside = inside + [known(dim(data, i)) ? dim(data, i) : size(data, i)]
@set total = total + [size(data, i)]
@elif axes_known and known(P) and known(dim(data, i))
@set skip = skip + [max(0 - P[k], 0)]
@set before = before + [max(P[k], 0)]
@set inside = inside + [dim(data, i) + min(P[k], 0) + min(P[k + n], 0)]
@set total = total + [dim(output, i)]
@else
@if axes_known
@let i64 %front${i} = ${known(P) ? P[k] : "%pad" + k}
@let i64 %back${i} = ${known(P) ? P[k + n] : "%pad" + (k + n)}
@else
@let i64 %front${i}_0 = 0
@let i64 %back${i}_0 = 0
@for j in range(n)
@let i1(i64) %is${i}_${j} = %axis${j} == ${i} || %axis${j} == ${i - r}
@let i64 %front${i}_${j + 1} = %is${i}_${j} ? ${known(P) ? P[j] : "%pad" + j} : %front${i}_${j}
@let i64 %back${i}_${j + 1} = %is${i}_${j} ? ${known(P) ? P[j + n] : "%pad" + (j + n)} : %back${i}_${j}
@end
@let i64 %front${i} = %front${i}_${n}
@let i64 %back${i} = %back${i}_${n}
@end
// So far that nothing fits is far enough at 2^61: sums of these do not wrap.
@let index %first${i} = max(min(index(i64 %front${i}), 2305843009213693952), -2305843009213693952)
@let index %last${i} = max(min(index(i64 %back${i}), 2305843009213693952), -2305843009213693952)
@let index %skip${i} = max(-%first${i}, 0)
@let index %before${i} = max(%first${i}, 0)
@let index %inside${i} = ${size(data, i)} - %skip${i} + min(%last${i}, 0)
@let index %total${i} = ${size(data, i)} + %first${i} + %last${i}
@let i1(index) %fits${i} = %inside${i} >= 0 && %total${i} ${known(dim(output, i)) ? "== " + dim(output, i) : ">= 0"}
cf.assert %fits${i}, "${place()}: its pads do not fit the size of axis ${i}"
@if mode != "constant"
@let i1(index) %filled${i} = %inside${i} > 0 || %total${i} == 0
cf.assert %filled${i}, "${place()}: nothing is left of axis ${i} that could be repeated"
@end
@set skip = skip + ["%skip" + i]
@set before = before + ["%before" + i]
@set inside = inside + ["%inside" + i]
@set total = total + ["%total" + i]
@end
@end
%empty = tensor.empty(${[total[i] for i in range(r) if not known(dim(output, i))]}) : ${type(output)}
@if r == 0
%output = tensor.cast %data : ${type(data)} to ${type(output)}
@elif mode == "constant"
@if has(constant_value) and not (0 in dims(constant_value))
%zero = arith.constant 0 : index
@if none in dims(constant_value)
@let i1(index) %has_value = ${join(["1"] + sizes(constant_value), " * ")} > 0
cf.assert %has_value, "${place()}: the value it fills with is not there"
@end
%value = tensor.extract %constant_value[${["%zero" for i in range(rank(constant_value))]}] : ${type(constant_value)}
@else
%value = arith.constant ${is_float(data) ? "0.0" : "0"} : ${scalar(data)}
@end
%filled = linalg.fill ins(%value : ${scalar(data)}) outs(%empty : ${type(output)}) -> ${type(output)}
@set kept = tensor(inside, scalar(data))
%kept = tensor.extract_slice %data[${skip}] [${inside}] [${[1 for i in range(r)]}] : ${type(data)} to ${kept}
%output = tensor.insert_slice %kept into %filled[${before}] [${inside}] [${[1 for i in range(r)]}] : ${kept} into ${type(output)}
@else
@set all = ["d" + i for i in range(r)]
%output = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    outs(%empty : ${type(output)}) {
^bb0(%old: ${scalar(output)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@if mode == "edge"
@let index %q${i} = max(min(%d${i} - ${before[i]}, ${inside[i]} - 1), 0)
@elif mode == "wrap"
@let index %rest${i} = rem(%d${i} - ${before[i]}, ${inside[i]})
@let index %q${i} = %rest${i} < 0 ? %rest${i} + ${inside[i]} : %rest${i}
@else
// Mirrored at both ends, again and again if it must.
@let index %turn${i} = max(2 * (${inside[i]} - 1), 1)
@let index %rest${i} = rem(%d${i} - ${before[i]}, %turn${i})
@let index %ring${i} = %rest${i} < 0 ? %rest${i} + %turn${i} : %rest${i}
@let index %q${i} = min(%ring${i}, %turn${i} - %ring${i})
@end
@let index %at${i} = %q${i} + ${skip[i]}
@end
  %x = tensor.extract %data[${["%at" + i for i in range(r)]}] : ${type(data)}
  linalg.yield %x : ${scalar(output)}
} -> ${type(output)}
@end
