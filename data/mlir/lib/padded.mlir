// lib/padded_tensor of the operand x.
@macro x, T, before, behind, value
@do numbers(x)
@do padded_tensor(x, dims(x), numbers, T, before, behind, value)
@give image, image_dims, image_sizes
