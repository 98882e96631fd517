// to = data seen as three axes: those before axis together, the axis, and those behind it together.
// Sizes are the indices `to`_0 to `to`_2. axis is a number, or none and axis_name an index; kinds are
// the three sizes as numbers, where they are known.
@macro data, axis, axis_name, kinds, to
@set r = rank(data)
@for k in range(3)
@if known(axis)
@let index ${to}_${k} = ${join(["1"] + [size(data, i) for i in range(r) if (i < axis ? 0 : i == axis ? 1 : 2) == k], " * ")}
@else
@let index %part${k}_0 = 1
@for i in range(r)
@let i1(index) %has${k}_${i} = ${axis_name} ${k == 0 ? ">" : k == 1 ? "==" : "<"} ${i}
@let index %part${k}_${i + 1} = %has${k}_${i} ? %part${k}_${i} * ${size(data, i)} : %part${k}_${i}
@end
@let index ${to}_${k} = %part${k}_${r}
@end
@end
%three_sizes = tensor.from_elements ${to}_0, ${to}_1, ${to}_2 : tensor<3xindex>
${to} = tensor.reshape ${data}(%three_sizes) : (${type(data)}, tensor<3xindex>) -> ${tensor(kinds, scalar(data))}
