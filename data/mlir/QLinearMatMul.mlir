// The product of matrices of codes: sums in i32, scaled, rounded to even, the zero point added,
// saturated.
@if not (elem(a) in ["i8", "u8"] and elem(b) in ["i8", "u8"] and elem(y) in ["i8", "u8"])
@refuse "floats of 8 bits are not compiled"
@end
@do product_integer(a, b, a_zero_point, b_zero_point, y)
@set r = rank(y)
@set all = ["d" + i for i in range(r)]
@set S = elem(a_scale)
@do parameter(a_scale)
@set a_one = one
@do parameter(b_scale)
@set b_one = one
@do parameter(y_scale)
@set y_one = one
@do parameter(y_zero_point)
@set zero_one = one
// Scales of rank 1 are a column of A, and a row of B and of the result.
@set row_axis = rank(b) > 1 ? r - 2 : r - 1
@set a_axes = rank(a_scale) == 1 ? [rank(a) > 1 ? row_axis : none] : [j == rank(a_scale) - 1 ? none : j + r - rank(a_scale) for j in range(rank(a_scale))]
@do scale_check(a_scale, a_axes, sum_sizes)
@do scale_check(b_scale, [j + r - rank(b_scale) for j in range(rank(b_scale))], sum_sizes)
@do scale_check(y_scale, [j + r - rank(y_scale) for j in range(rank(y_scale))], sum_sizes)
@do scale_check(y_zero_point, [j + r - rank(y_zero_point) for j in range(rank(y_zero_point))], sum_sizes)
%empty = tensor.empty(${[s for s in sum_sizes if not (s >= 0)]}) : ${tensor(sum_dims, elem(y))}
%codes = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(${sums} : ${tensor(sum_dims, "i32")}) outs(%empty : ${tensor(sum_dims, elem(y))}) {
^bb0(%sum: i32, %old: i8):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@do parameter_at(a_scale, a_one, [known(x) ? "%d" + x : 0 for x in a_axes])
@let f32 %sa = f32(${S} ${element})
@do parameter_at(b_scale, b_one, ["%d" + max(j + r - rank(b_scale), 0) for j in range(rank(b_scale))])
@let f32 %sb = f32(${S} ${element})
@do parameter_at(y_scale, y_one, ["%d" + max(j + r - rank(y_scale), 0) for j in range(rank(y_scale))])
@let f32 %sy = f32(${S} ${element})
@do parameter_at(y_zero_point, zero_one, ["%d" + max(j + r - rank(y_zero_point), 0) for j in range(rank(y_zero_point))])
@let f32 %scale = %sa * %sb / %sy
@do code_of("%sum", "%scale", element, elem(y), "%code")
  linalg.yield %code : i8
} -> ${tensor(sum_dims, elem(y))}
%y = tensor.cast %codes : ${tensor(sum_dims, elem(y))} to ${type(y)}
