// y = the convolution of an image, padded already, with weights, and a bias or none: rows of memory
// of type T. Groups with few channels are done row by row, others as products of the weights with
// the windows as columns.
@macro T, image_sizes, in_channels, out_channels, kernel, strides, dilations, counts, x, w, y, bias
@set r = len(kernel)
@set groups = attr("group")
@do image_steps(image_sizes)
@do multiplied(counts)
@set n = product_of
@do multiplied([in_channels] + kernel)
@set k = product_of
@set is_matrix = len([i for i in range(r) if kernel[i] == 1 and strides[i] == 1]) == r
@set each = out_channels >= 0 ? out_channels / groups : none
@set is_thin = known(each) and each < 4 and groups > 1
@if not is_matrix or is_thin
@set tap_steps = [plane]
@for i in range(r)
@do multiplied([steps[i], dilations[i]])
@set tap_steps = tap_steps + [product_of]
@end
@do index_table([in_channels] + kernel, tap_steps)
@set taps = table
@end
@if is_thin
@set line = counts[r - 1]
@set width = line >= 16 ? 16 : line >= 8 ? 8 : line >= 4 ? 4 : 1
@if line >= 0
@do conv_rows(T, width, groups, in_channels, out_channels, image_sizes[0], plane, steps, strides, counts, taps, k, x, w, y, bias)
@else
@let i1(index) %is_long = ${line} >= 8
scf.if %is_long {
@do conv_rows(T, 8, groups, in_channels, out_channels, image_sizes[0], plane, steps, strides, counts, taps, k, x, w, y, bias)
} else {
@do conv_rows(T, 1, groups, in_channels, out_channels, image_sizes[0], plane, steps, strides, counts, taps, k, x, w, y, bias)
}
@end
@else
@if not is_matrix
@set place_steps = []
@for i in range(r)
@do multiplied([steps[i], strides[i]])
@set place_steps = place_steps + [product_of]
@end
@do index_table(counts, place_steps)
@set places = table
@else
@set taps = none
@set places = none
@end
@let index %zero = 0
@let index %one = 1
@let index %images = ${image_sizes[0]}
@let index %groups = ${groups}
@let index %channels = ${out_channels}
@let index %each = %channels / ${groups}
scf.for %image = %zero to %images step %one {
scf.for %group = %zero to %groups step %one {
@let index %first = %group * %each
@let index %x_at = (%image * ${groups} + %group) * ${in_channels} * ${plane}
@let index %w_at = %first * ${k}
@let index %y_at = (%image * %channels + %first) * ${n}
@do product_blocks(T, known(each) ? each : "%each", n, k, w, "%w_at", k, x, "%x_at", plane, taps, places, y, "%y_at", n, bias, "%first")
}
}
@end
