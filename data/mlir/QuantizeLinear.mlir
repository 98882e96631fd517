// Numbers as codes: x / scale + zero point, rounded and cut to what the type holds.
@elementwise stored when (not has(y_scale) or rank(y_scale) == 0 or (rank(y_scale) == 1 and dim(y_scale, 0) == 1 and rank(x) > 0)) and (not has(y_zero_point) or rank(y_zero_point) == 0 or (rank(y_zero_point) == 1 and dim(y_zero_point, 0) == 1 and rank(x) > 0))
@set asked = attr("precision")
// f8e8m0 holds powers of two: the quotient is of the type of x then.
@set otherwise = elem(y_scale) == "f8e8m0" ? elem(x) : elem(y_scale)
@set precision = asked == 1 ? "f32" : asked == 10 ? "f16" : asked == 16 ? "bf16" : otherwise
@if (not has(y_scale) or rank(y_scale) == 0 or (rank(y_scale) == 1 and dim(y_scale, 0) == 1 and rank(x) > 0)) and (not has(y_zero_point) or rank(y_zero_point) == 0 or (rank(y_zero_point) == 1 and dim(y_zero_point, 0) == 1 and rank(x) > 0))
@do quantize_element("%x", elem(x), "%y_scale", elem(y_scale), has(y_zero_point) ? "%y_zero_point" : none, elem(y), precision, attr("saturate") != 0, "%y")
@else
@do by_scales(x, y_scale, has(y_zero_point) ? y_zero_point : none, y, true, precision)
@end
