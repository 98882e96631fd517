// A convolution. Halves are added up in f32 and rounded once.
@do numbers(W)
@set weight_sizes = numbers
@set kernel = weight_sizes[2:]
@do window(X, Y, kernel, false)
@set T = elem(X)
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
