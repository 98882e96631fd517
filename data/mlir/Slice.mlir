// Every so-manieth element between two ends, along some axes: a view, not a copy. Ends may be far
// outside and count from the end if below zero, so that they are computed in i64.
@set r = rank(data)
// All lists are equally long, so that one whose length is known is enough; a scalar is a list of one.
@set lengths = [rank(list) == 0 ? 1 : dim(list, 0) for list in [starts, ends] + (has(axes) ? [axes] : []) + (has(steps) ? [steps] : [])]
@set known_lengths = [length for length in lengths if known(length)]
@set n = known_lengths ? known_lengths[0] : none
@if not known(n)
@refuse "the number of its starts is not known"
@end
@set s = const(starts)
@set e = const(ends)
@set a = has(axes) ? const(axes) : range(n)
@set p = has(steps) ? const(steps) : [1 for k in range(n)]
// Far outside is far enough at 2^62, which has an opposite.
@set far = 4611686018427387904
@set s = known(s) ? [min(max(x, -far), far) for x in s] : none
@set e = known(e) ? [min(max(x, -far), far) for x in e] : none
@set p = known(p) ? [min(max(x, -far), far) for x in p] : none
@set axes_known = known(a)
@set a = axes_known ? [i < 0 ? i + r : i for i in a] : []
@set numbers = axes_known and known(s) and known(e) and known(p)
@if not numbers
@do elements(starts, n, "%start")
@do elements(ends, n, "%end")
@if has(steps)
@do elements(steps, n, "%step")
@end
@if not axes_known
@do elements(axes, n, "%axis")
@do check_axes(n, "%axis", r)
@end
@end
@set offsets = []
@set lengths = []
@set strides = []
@for i in range(r)
@set k = -1
@for j in range(axes_known ? n : 0)
@set k = a[j] == i ? j : k
@end
@set size = dim(data, i)
@if axes_known and k < 0
@set offsets = offsets + [0]
@set lengths = lengths + [known(dim(output, i)) ? dim(output, i) : size(data, i)]
@set strides = strides + [1]
@elif numbers and known(size)
@set most = p[k] > 0 ? size : size - 1
@set first = min(max(s[k] < 0 ? s[k] + size : s[k], 0), max(most, 0))
@set offsets = offsets + [first]
@set lengths = lengths + [dim(output, i)]
@set strides = strides + [dim(output, i) > 1 ? p[k] : 1]
@else
@let i64 %size${i} = i64(index ${size(data, i)})
@if axes_known
@let i64 %from${i} = ${known(s) ? s[k] : "%start" + k}
@let i64 %to${i} = ${known(e) ? e[k] : "%end" + k}
@let i64 %given${i} = ${known(p) ? p[k] : "%step" + k}
@else
@let i64 %from${i}_0 = 0
@let i64 %to${i}_0 = %size${i}
@let i64 %by${i}_0 = 1
@for j in range(n)
@let i1(i64) %is${i}_${j} = %axis${j} == ${i} || %axis${j} == ${i - r}
@let i64 %from${i}_${j + 1} = %is${i}_${j} ? %start${j} : %from${i}_${j}
@let i64 %to${i}_${j + 1} = %is${i}_${j} ? %end${j} : %to${i}_${j}
@let i64 %by${i}_${j + 1} = %is${i}_${j} ? ${has(steps) ? "%step" + j : 1} : %by${i}_${j}
@end
@let i64 %from${i} = %from${i}_${n}
@let i64 %to${i} = %to${i}_${n}
@let i64 %given${i} = %by${i}_${n}
@end
@let i64 %by${i} = max(min(%given${i}, ${far}), -${far})
@let i1(i64) %ahead${i} = %by${i} > 0
@let i64 %most${i} = %ahead${i} ? %size${i} : %size${i} - 1
@let i64 %least${i} = %ahead${i} ? 0 : -1
@let i64 %from_end${i} = %from${i} < 0 ? %from${i} + %size${i} : %from${i}
@let i64 %to_end${i} = %to${i} < 0 ? %to${i} + %size${i} : %to${i}
@let i64 %first${i} = max(min(%from_end${i}, %most${i}), 0)
@let i64 %last${i} = max(min(%to_end${i}, %most${i}), %least${i})
@let i64 %span${i} = %ahead${i} ? %last${i} - %first${i} : %first${i} - %last${i}
@let i64 %pace${i} = max(abs(%by${i}), 1)
@let i1(i64) %some${i} = %span${i} > 0 && %size${i} > 0
@let i64 %count${i} = %some${i} ? (%span${i} - 1) / %pace${i} + 1 : 0
@if not known(p)
@let i1(i64) %moves${i} = %by${i} != 0
cf.assert %moves${i}, "${place()}: a step is 0"
@end
@let index %offset${i} = index(i64 %first${i})
@let index %length${i} = index(i64 %count${i})
@let i64 %near${i} = %count${i} > 1 ? %by${i} : 1
@let index %stride${i} = index(i64 %near${i})
@if known(dim(output, i))
@let i1(index) %fits${i} = %length${i} == ${dim(output, i)}
cf.assert %fits${i}, "${place()}: axis ${i} of its result has another size than the model says"
@end
@set offsets = offsets + ["%offset" + i]
@set lengths = lengths + [known(dim(output, i)) ? dim(output, i) : "%length" + i]
@set strides = strides + [known(p) and axes_known ? p[k] : "%stride" + i]
@end
@end
@if r == 0
%output = tensor.cast %data : ${type(data)} to ${type(output)}
@else
%output = tensor.extract_slice %data[${offsets}] [${lengths}] [${strides}] : ${type(data)} to ${type(output)}
@end
