// A convolution. Halves are added up in f32 and rounded once.
@do numbers(W)
@set weight_sizes = numbers
@set kernel = weight_sizes[2:]
@do window(X, Y, kernel, false)
@set T = elem(X)
@do conv_check(X, W, has(B) ? B : none)
// Where a group has few channels, loops over rows, generated for the sizes at hand, are the fastest,
// but for the usual kernels of a channel by itself.
@set is_usual = T in ["f32", "f64"] and weight_sizes[1] == 1 and kernel in [[3, 3], [5, 5]] and strides in [[1, 1], [2, 2]] and dilations == [1, 1]
@set is_thin = attr("group") > 1 and weight_sizes[0] >= 0 and weight_sizes[0] / attr("group") < 4 and not is_usual
@if not pure and len(kernel) <= 3 and not is_thin
@do numbers(X)
@do address(X, dims(X), T, "%x")
@set k = product(dims(W)[1:])
@set each = known(dim(W, 0)) ? dim(W, 0) / attr("group") : none
@do conv_is_direct(weight_sizes[1], each, counts, kernel, strides, dilations)
@set packed = T == "f32" and not is_usual ? panels(W, attr("group"), each, k, k, 1, is_direct ? 16 : 12) : none
@do address(known(packed) ? packed[0] : W, known(packed) ? [packed[1]] : dims(W), T, "%w")
@if has(B)
@do address(B, dims(B), T, "%b")
@end
@set sizes = [numbers[0], weight_sizes[0]] + counts
@do result_address(sizes, T)
@do scratch("%scratch", "%scratch_bytes")
@do conv_sizes(numbers[0], attr("group"), numbers[1], weight_sizes[0], numbers[2:], counts, kernel, strides, dilations, before)
@set other = 0
@set code = 0
@if T == "f32" or T == "f64"
@do finishing(Y)
@end
@do call_kernel("cameo_conv_" + (not known(packed) ? "" : is_direct ? "direct_" : "packed_") + T, ["%x", "%w", address] + conv_sizes + [has(B) ? "%b" : 0, other, code, "%scratch", "%scratch_bytes"], 2)
@do finished(memory, memory_dims, T, sizes, Y)
@else
@set S = T == "f16" or T == "bf16" ? "f32" : T
@let ${T} %nothing = 0
@do padded(X, T, before, behind, "%nothing")
@do converted(image, image_dims, image_sizes, T, S)
@do flat(value, image_dims, image_sizes, S, "%x")
@do converted(W, dims(W), weight_sizes, T, S)
@do flat(value, dims(W), weight_sizes, S, "%w")
@set bias = none
@if has(B)
@do numbers(B)
@do converted(B, dims(B), numbers, T, S)
@do flat(value, dims(B), numbers, S, "%b")
@set bias = "%b"
@end
@set sizes = [image_sizes[0], weight_sizes[0]] + counts
@do fresh_memory(sizes, S)
@do conv(S, image_sizes, weight_sizes[1], weight_sizes[0], kernel, strides, dilations, counts, "%x", "%w", row, bias)
@do finished(memory, memory_dims, S, sizes, Y)
@end
