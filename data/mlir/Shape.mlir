// The sizes of some axes in a row.
@set r = rank(data)
@set first = attr("start") < 0 ? max(attr("start") + r, 0) : min(attr("start"), r)
@set last = not known(attr("end")) ? r : attr("end") < 0 ? max(attr("end") + r, 0) : min(attr("end"), r)
@set axes = range(first, max(last, first))
@for i in axes
@let i64 %d${i} = i64(index ${size(data, i)})
@end
@if len(axes) == 0
%shape = tensor.empty() : ${type(shape)}
@else
%shape = tensor.from_elements ${["%d" + i for i in axes]} : ${type(shape)}
@end
