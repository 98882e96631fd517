// A convolution of codes: sums in i32, scaled, rounded to even, the zero point added, saturated.
@do conv_integer(x, w, x_zero_point, w_zero_point, y)
@set r = rank(x)
@set all = ["d" + i for i in range(r)]
@do parameter_check(w_scale, sum_sizes[1])
@do parameter_check(x_scale, 1)
@do parameter_check(y_scale, 1)
@do parameter_check(y_zero_point, 1)
@do parameter(x_scale)
@set x_one = one
@do parameter(w_scale)
@set w_one = one
@do parameter(y_scale)
@set y_one = one
@do parameter(y_zero_point)
@set zero_one = one
@set has_bias = has(B)
@if has_bias
@do check_same(B, 0, w, 0)
@end
%empty = tensor.empty(${[s for s in sum_sizes if not (s >= 0)]}) : ${tensor(sum_dims, elem(y))}
%codes = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, ${has_bias ? "affine_map<(" + join(all, ", ") + ") -> (d1)>, " : ""}affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(${sums}${has_bias ? ", " + B : ""} : ${tensor(sum_dims, "i32")}${has_bias ? ", " + type(B) : ""}) outs(%empty : ${tensor(sum_dims, elem(y))}) {
^bb0(%sum: i32${has_bias ? ", " + "%bias" + ": i32" : ""}, %old: i8):
  %c = linalg.index 1 : index
  %first = arith.constant 0 : index
@do parameter_at(x_scale, x_one, ["%first"])
@let f32 %sx = f32(f32 ${element})
@do parameter_at(w_scale, w_one, ["%c"])
@let f32 %sw = f32(f32 ${element})
@do parameter_at(y_scale, y_one, ["%first"])
@let f32 %sy = f32(f32 ${element})
@do parameter_at(y_zero_point, zero_one, ["%first"])
@let f32 %scale = %sx * %sw / %sy
@if has_bias
@let i32 %total = %sum + %bias
@else
@let i32 %total = %sum
@end
@do code_of("%total", "%scale", element, elem(y), "%code")
  linalg.yield %code : i8
} -> ${tensor(sum_dims, elem(y))}
%y = tensor.cast %codes : ${tensor(sum_dims, elem(y))} to ${type(y)}
