// A transposed convolution: the gradient of a convolution by its input. Without kernels in C it is
// a plain one over an image with zeros between its elements. Halves are added up in f32.
@do numbers(W)
@set weight_sizes = numbers
@set kernel = weight_sizes[2:]
@do transposed_window(X, Y, kernel)
@do numbers(X)
@set x_sizes = numbers
@set T = elem(X)
@set S = T == "f16" or T == "bf16" ? "f32" : T
@if not (x_sizes[1] >= 0 and weight_sizes[0] >= 0)
@let i1(index) %fits = ${x_sizes[1]} == ${weight_sizes[0]} && rem(${weight_sizes[0]}, ${attr("group")}) == 0
cf.assert %fits, "${place()}: the channels of its input and of its weights do not agree"
@end
@if known(dim(Y, 1))
@set channels = dim(Y, 1)
@else
@let index %channels = ${weight_sizes[1]} * ${attr("group")}
@set channels = "%channels"
@end
@if has(B)
@do numbers(B)
@if not (numbers[0] >= 0 and channels >= 0)
@let i1(index) %enough = ${numbers[0]} == ${channels}
cf.assert %enough, "${place()}: the bias does not have one number per channel"
@end
@do converted(B, dims(B), numbers, T, S)
@set bias_value = value
@end
@set sizes = [x_sizes[0], channels] + counts
@if not pure and len(kernel) <= 3
@do converted(X, dims(X), x_sizes, T, S)
@do address(value, dims(X), S, "%x")
@do converted(W, dims(W), weight_sizes, T, S)
@do address(value, dims(W), S, "%w")
@if has(B)
@do address(bias_value, dims(B), S, "%b")
@end
@do result_address(sizes, S)
@do scratch("%scratch", "%scratch_bytes")
@do conv_sizes(x_sizes[0], attr("group"), channels, x_sizes[1], counts, x_sizes[2:], kernel, strides, dilations, before)
@do call_kernel("cameo_conv_input_" + S, ["%x", "%w", address] + conv_sizes + [has(B) ? "%b" : 0, 0, 0, "%scratch", "%scratch_bytes"], 2)
@else
@do spread_image(X, strides, spans, before, counts)
@do converted(image, image_dims, image_sizes, T, S)
@do flat(value, image_dims, image_sizes, S, "%x")
@do turned_weights(W, "%turned")
@do converted("%turned", turned_dims, turned_sizes, T, S)
@do flat(value, turned_dims, turned_sizes, S, "%w")
@set bias = none
@if has(B)
@do flat(bias_value, dims(B), numbers, S, "%b")
@set bias = "%b"
@end
@do fresh_memory(sizes, S)
@do conv(S, image_sizes, turned_sizes[1], channels, kernel, [1 for s in strides], dilations, counts, "%x", "%w", row, bias)
@end
@do finished(memory, memory_dims, S, sizes, Y)
