// Parts along an axis, as long as a list says or else equally long: views, not copies.
@whole
@set r = rank(input)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set n = len(outputs)
@set lengths = has(split) ? const(split) : none
@let i64 %whole = i64(index ${size(input, axis)})
@if has(split)
@do elements(split, n, "%length")
@if not known(lengths) or not known(dim(input, axis))
// Lengths up to that of the axis cannot wrap when they are added up.
@set sum = join(["%length" + o for o in range(n)], " + ")
@set inside = join(["(%length" + o + " >= 0 && %length" + o + " <= %whole)" for o in range(n)], " && ")
@let i1(i64) %fits = ${inside} && %whole == ${sum}
cf.assert %fits, "${place()}: the lengths in split are below 0 or do not add up to the size of axis ${axis}"
@end
@else
// Rounded up: the last ones take what is left.
@let i64 %most = ceildiv(%whole, ${n})
@end
@let i64 %at0 = 0
@for o in range(n)
@if not has(split)
@let i64 %length${o} = min(%most, %whole - %at${o})
@end
@let i64 %at${o + 1} = %at${o} + %length${o}
@if has(outputs[o])
@set wanted = dim(outputs[o], axis)
@let index %offset${o} = index(i64 %at${o})
@let index %part${o} = index(i64 %length${o})
@if known(wanted) and not known(lengths) and not known(dim(input, axis))
@let i1(index) %has${o} = %part${o} == ${wanted}
cf.assert %has${o}, "${place()}: part ${o} has another size than the model says"
@end
@set offsets = [i == axis ? "%offset" + o : 0 for i in range(r)]
@set sizes = [known(dim(outputs[o], i)) ? dim(outputs[o], i) : i == axis ? "%part" + o : size(input, i) for i in range(r)]
${outputs[o]} = tensor.extract_slice %input[${offsets}] [${sizes}] [${[1 for i in range(r)]}] : ${type(input)} to ${type(outputs[o])}
@end
@end
