// to = x less its zero point (or none), in i32. `axes` says by which axis of x the zero point goes
// along each of its own; 0 where that is given as none.
@macro x, zero, axes, to
@set r = rank(x)
@set all = ["d" + i for i in range(r)]
@set wide = tensor(dims(x), "i32")
@if known(zero)
@do parameter(zero)
@end
%empty = tensor.empty(${unknown_sizes(x)}) : ${wide}
${to} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(${x} : ${type(x)}) outs(%empty : ${wide}) {
^bb0(%in_x: i8, %old: i32):
@let i32 %whole = i32(${elem(x)} %in_x)
@if known(zero)
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@do parameter_at(zero, one, [known(a) ? "%d" + a : 0 for a in axes])
@let i32 %off = i32(${elem(zero)} ${element})
@let i32 %less = %whole - %off
  linalg.yield %less : i32
@else
  linalg.yield %whole : i32
@end
} -> ${wide}
