// The convolution of codes x and w, less their zero points (or none), in i32. Gives `sums`, a tensor,
// and sum_sizes and sum_dims.
@macro x, w, x_zero, w_zero, y
@do numbers(w)
@set weight_sizes = numbers
@set kernel = weight_sizes[2:]
@do window(x, y, kernel, false)
@do conv_check(x, w, none)
@do numbers(x)
@set x_sizes = numbers
@if known(x_zero)
@do parameter_check(x_zero, 1)
@end
@if known(w_zero)
@do parameter_check(w_zero, weight_sizes[0])
@end
@set sum_sizes = [x_sizes[0], weight_sizes[0]] + counts
@if not pure and len(kernel) <= 3
@do address(x, dims(x), elem(x), "%in_x")
@do address(w, dims(w), elem(w), "%in_w")
@if known(x_zero)
@do address(x_zero, dims(x_zero), elem(x_zero), "%x_zero")
@end
@set step = 0
@if known(w_zero)
@do address(w_zero, dims(w_zero), elem(w_zero), "%w_zero")
@do numbers(w_zero)
@if rank(w_zero) == 1
@let index %step = ${numbers[0]} == 1 ? 0 : 1
@set step = "%step"
@end
@end
@do result_address(sum_sizes, "i32")
@do scratch("%scratch", "%scratch_bytes")
@do conv_sizes(x_sizes[0], attr("group"), x_sizes[1], weight_sizes[0], x_sizes[2:], counts, kernel, strides, dilations, before)
@do call_kernel("cameo_conv_i8", ["%in_x", "%in_w", address] + conv_sizes + [is_unsigned(x) ? 0 : 1, is_unsigned(w) ? 0 : 1, known(x_zero) ? "%x_zero" : 0, known(w_zero) ? "%w_zero" : 0, step, "%scratch", "%scratch_bytes"], none)
@else
@do widened(x, x_zero, [none for i in range(known(x_zero) ? rank(x_zero) : 0)], "%x_wide")
@do widened(w, w_zero, known(w_zero) and rank(w_zero) == 1 ? [0] : [none for i in range(known(w_zero) ? rank(w_zero) : 0)], "%w_wide")
@let i32 %nothing = 0
@do padded_tensor("%x_wide", dims(x), x_sizes, "i32", before, behind, "%nothing")
@do flat(image, image_dims, image_sizes, "i32", "%in_x")
@do flat("%w_wide", dims(w), weight_sizes, "i32", "%in_w")
@do fresh_memory(sum_sizes, "i32")
@do conv("i32", image_sizes, weight_sizes[1], weight_sizes[0], kernel, strides, dilations, counts, "%in_x", "%in_w", row, none)
@end
@set sum_dims = memory_dims
@set sums = fresh()
${sums} = bufferization.to_tensor ${memory} restrict writable : ${memref(memory_dims, "i32")}
@give sums, sum_sizes, sum_dims
