// The geometry of windows over the spatial axes of x, whose counts are the spatial sizes of y.
// Gives lists by spatial axis, of numbers or, where they are not known, of names of indices:
// strides, dilations, spans (of a window), before and after (the padding), counts (of windows), and
// behind: what windows see behind x, which rounding up makes more than the padding.
@macro x, y, kernel, rounds_up
@set r = rank(x) - 2
@set given = attr("strides")
@set strides = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("dilations")
@set dilations = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("pads")
@set mode = attr("auto_pad")
@set same = mode == "SAME_UPPER" or mode == "SAME_LOWER"
@set pads = known(given) and len(given) > 0 and mode != "VALID" ? given : [0 for i in range(2 * r)]
@do numbers(x)
@set in = numbers[2:]
@set spans = []
@set counts = []
@set before = []
@set after = []
@set behind = []
@for i in range(r)
@if kernel[i] >= 0
@set span = (kernel[i] - 1) * dilations[i] + 1
@else
@let i1(index) %some${i} = ${kernel[i]} > 0
cf.assert %some${i}, "${place()}: the kernel has size 0 along spatial axis ${i}"
@let index %span${i} = (${kernel[i]} - 1) * ${dilations[i]} + 1
@set span = "%span" + i
@end
@if known(dim(y, i + 2))
@set count = dim(y, i + 2)
@elif same
@let index %count${i} = ceildiv(${in[i]}, ${strides[i]})
@set count = "%count" + i
@else
@let index %room${i} = ${in[i]} + ${pads[i] + pads[r + i]} - ${span}
@let index %down${i} = floordiv(%room${i}, ${strides[i]}) + 1
@let index %more${i} = ${rounds_up ? 1 : 0}
@let index %up${i} = %down${i} * ${strides[i]} < ${in[i]} + ${pads[i]} && rem(%room${i}, ${strides[i]}) != 0 ? %down${i} + %more${i} : %down${i}
@let index %count${i} = %room${i} < 0 ? 0 : %up${i}
@set count = "%count" + i
@let i1(index) %fits${i} = %count${i} > 0 || ${in[i]} == 0
cf.assert %fits${i}, "${place()}: its window does not fit into spatial axis ${i}"
@end
@set are_numbers = count >= 0 and span >= 0 and in[i] >= 0
@if not same
@set first = pads[i]
@set last = pads[r + i]
@elif are_numbers
@set total = max(0, (count - 1) * strides[i] + span - in[i])
@set first = mode == "SAME_UPPER" ? total / 2 : total - total / 2
@set last = total - first
@else
@let index %total${i} = max((${count} - 1) * ${strides[i]} + ${span} - ${in[i]}, 0)
@let index %half${i} = floordiv(%total${i}, 2)
@let index %rest${i} = %total${i} - %half${i}
@set first = mode == "SAME_UPPER" ? "%half" + i : "%rest" + i
@set last = mode == "SAME_UPPER" ? "%rest" + i : "%half" + i
@end
@if are_numbers
@set past = max(0, (count - 1) * strides[i] + span - in[i] - first)
@else
@let index %past${i} = max((${count} - 1) * ${strides[i]} + ${span} - ${in[i]} - ${first}, 0)
@set past = "%past" + i
@end
@set spans = spans + [span]
@set counts = counts + [count]
@set before = before + [first]
@set after = after + [last]
@set behind = behind + [past]
@end
@give strides, dilations, spans, counts, before, after, behind
