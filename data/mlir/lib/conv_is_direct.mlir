// Gives `is_direct`: whether cameo_conv_direct_f32 is the faster kernel for a convolution, as far as
// its sizes are known. Measured with AVX-512: results add up enough terms for what it takes to turn a
// tile, lines of results are nearly a multiple of 7, and what one of them reads fits in the scratch
// memory. Where the kernel is one element, the other one has little to copy, until images are small.
@macro in_channels, each, counts, kernel, strides, dilations
@set r = len(kernel)
@set is_direct = false
@set sizes = [n for n in counts + kernel if n >= 0]
@if r <= 2 and len(sizes) == 2 * r and in_channels >= 0 and each >= 0
@set taps = product(kernel)
@set places = product(counts)
@set line = taps == 1 and product(strides) == 1 ? places : counts[r - 1]
@set lines = r > 1 ? (kernel[0] - 1) * dilations[0] + 1 : 1
@set reach = (kernel[r - 1] - 1) * dilations[r - 1]
@set copied = taps == 1 and product(strides) == 1 ? 0 : in_channels * lines * (line * strides[r - 1] + reach + 7)
@set is_deep = taps == 1 ? in_channels >= (places <= 49 ? 128 : 192) and places <= 196 : in_channels * taps >= 128 or taps >= 25
@set is_full = line * 10 >= (line + 6) / 7 * 63 and each >= 16 and each * 4 >= (each + 15) / 16 * 48
@set is_direct = is_deep and is_full and copied <= 60000
@end
@give is_direct
