// Codes as numbers: (x - zero point) * scale, of which there is one for all, one for each place along an
// axis, or one for each block.
@elementwise stored when (not has(x_scale) or rank(x_scale) == 0 or (rank(x_scale) == 1 and dim(x_scale, 0) == 1 and rank(x) > 0)) and (not has(x_zero_point) or rank(x_zero_point) == 0 or (rank(x_zero_point) == 1 and dim(x_zero_point, 0) == 1 and rank(x) > 0))
@if (not has(x_scale) or rank(x_scale) == 0 or (rank(x_scale) == 1 and dim(x_scale, 0) == 1 and rank(x) > 0)) and (not has(x_zero_point) or rank(x_zero_point) == 0 or (rank(x_zero_point) == 1 and dim(x_zero_point, 0) == 1 and rank(x) > 0))
@do dequantize_element("%x", elem(x), "%x_scale", elem(x_scale), has(x_zero_point) ? "%x_zero_point" : none, elem(y), "%y")
@else
@do by_scales(x, x_scale, has(x_zero_point) ? x_zero_point : none, y, false, none)
@end
