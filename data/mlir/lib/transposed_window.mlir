// The geometry of a transposed convolution of x to y, with numbers or names of indices by spatial
// axis. Gives strides, dilations, spans, before (padding that is taken away in front) and counts
// (the sizes of y).
@macro x, y, kernel
@set r = rank(x) - 2
@set given = attr("strides")
@set strides = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("dilations")
@set dilations = known(given) and len(given) > 0 ? given : [1 for i in range(r)]
@set given = attr("output_padding")
@set more = known(given) and len(given) > 0 ? given : [0 for i in range(r)]
@set given = attr("pads")
@set mode = attr("auto_pad")
@set pads = known(given) and len(given) > 0 and mode != "VALID" ? given : [0 for i in range(2 * r)]
@set given = attr("output_shape")
@set wanted = known(given) and len(given) > 0 ? given : []
@set same = mode == "SAME_UPPER" or mode == "SAME_LOWER"
@do numbers(x)
@set in = numbers[2:]
@set spans = []
@set before = []
@set counts = []
@for i in range(r)
@if kernel[i] >= 0
@set span = (kernel[i] - 1) * dilations[i] + 1
@else
@let index %span${i} = (${kernel[i]} - 1) * ${dilations[i]} + 1
@set span = "%span" + i
@end
@set are_numbers = in[i] >= 0 and span >= 0
@if are_numbers
@set extent = strides[i] * (in[i] - 1) + more[i] + span
@else
@let index %extent${i} = ${strides[i]} * (${in[i]} - 1) + ${more[i]} + ${span}
@set extent = "%extent" + i
@end
@if known(dim(y, i + 2))
@set count = dim(y, i + 2)
@elif len(wanted) > 0
@set count = wanted[i]
@elif same
@let index %count${i} = ${in[i]} * ${strides[i]}
@set count = "%count" + i
@else
@let index %count${i} = max(${extent} - ${pads[i] + pads[r + i]}, 0)
@set count = "%count" + i
@end
@if len(wanted) == 0 and not same
@set first = pads[i]
@elif are_numbers
@set total = max(0, extent - count)
@set first = mode == "SAME_UPPER" ? total / 2 : total - total / 2
@else
@let index %total${i} = max(${extent} - ${count}, 0)
@let index %half${i} = floordiv(%total${i}, 2)
@let index %rest${i} = %total${i} - %half${i}
@set first = mode == "SAME_UPPER" ? "%half" + i : "%rest" + i
@end
@set spans = spans + [span]
@set counts = counts + [count]
@set before = before + [first]
@end
@give strides, dilations, spans, before, counts
