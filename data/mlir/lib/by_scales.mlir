// y = elements of x with a scale s and a zero point z (or none) that belong to a place along the axis,
// or to a block of such places; operands of the node. quantizes: the macro quantize_element, else
// dequantize_element.
@macro x, s, z, y, quantizes, precision
@set r = rank(x)
@set block = attr("block_size")
@set axis = r == 1 ? 0 : attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set blocked = rank(s) == r and block > 0
@set all = ["d" + i for i in range(r)]
@set parameters = known(z) ? [s, z] : [s]
// Sizes that are not known are checked: one scale for all, or as many as the axis or its blocks need, and as
// many zero points as scales.
@for i in range(rank(s))
@set of = blocked ? i : axis
@set fits = not blocked or i != axis ? r > 0 and same(s, i, x, of) : false
@set fits = fits or known(dim(s, i)) and r > 0 and known(dim(x, of)) or rank(s) == 1 and dim(s, i) == 1
@if not fits
@set n = r > 0 ? size(x, of) : 1
@set have = size(s, i)
@do check_scale(have, n, blocked and i == axis ? block : 0, rank(s) == 1)
@end
@end
@if known(z)
@if rank(z) > 0 and rank(s) > 0
@for i in range(rank(z))
@do check_same(z, i, s, i)
@end
@else
@do check_length(rank(z) == 0 ? s : z, 1)
@end
@end
%empty = tensor.empty(${[size(x, i) for i in range(r) if not known(dim(y, i))]}) : ${type(y)}
@set along = [p for p in parameters if not blocked and rank(p) == 1 and r > 0 and (same(p, 0, x, axis) or known(dim(p, 0)) and dim(p, 0) == dim(x, axis))]
@set direct = len(along) == len(parameters)
@set reads = direct ? [x] + parameters : [x]
${y} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, ${direct ? join(["affine_map<(" + join(all, ", ") + ") -> (d" + axis + ")>, " for p in parameters], "") : ""}affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in range(r)]}]}
    ins(${reads} : ${[type(p) for p in reads]}) outs(%empty : ${type(y)}) {
@if direct
^bb0(%code: ${scalar(x)}, %scale: ${scalar(s)}, ${known(z) ? "%zero" : "%old"}: ${known(z) ? scalar(z) : scalar(y)}${known(z) ? ", " : ""}${known(z) ? "%old" : ""}${known(z) ? ": " + scalar(y) : ""}):
@else
^bb0(%code: ${scalar(x)}, %old: ${scalar(y)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
  %none = arith.constant 0 : index
@for i in range(rank(s))
@set n = size(s, i)
@if blocked and i == axis
@let index %s${i} = ${n} == 1 ? 0 : floordiv(%d${i}, ${block})
@elif blocked
@let index %s${i} = ${n} == 1 ? 0 : %d${i}
@elif r == 0
@let index %s${i} = 0
@else
@let index %s${i} = ${n} == 1 ? 0 : %d${axis}
@end
@end
  %scale = tensor.extract ${s}[${["%s" + i for i in range(rank(s))]}] : ${type(s)}
@if known(z)
@for i in range(rank(z))
@set n = size(z, i)
@if rank(z) == rank(s)
@let index %z${i} = ${n} == 1 ? 0 : %s${i}
@else
@let index %z${i} = 0
@end
@end
  %zero = tensor.extract ${z}[${["%z" + i for i in range(rank(z))]}] : ${type(z)}
@end
@end
@if quantizes
@do quantize_element("%code", elem(x), "%scale", elem(s), known(z) ? "%zero" : none, elem(y), precision, attr("saturate") != 0, "%result")
@else
@do dequantize_element("%code", elem(x), "%scale", elem(s), known(z) ? "%zero" : none, elem(y), "%result")
@end
  linalg.yield %result : ${scalar(y)}
} -> ${type(y)}
