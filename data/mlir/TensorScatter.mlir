// New rows written into a cache, at another place for each sample; around its end if circular.
@set r = rank(past_cache)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set around = attr("mode") == "circular"
@for i in range(r)
@if i == axis
@do check_at_most(update, i, past_cache, i)
@else
@do check_same(update, i, past_cache, i)
@end
@end
@set T = type(past_cache)
@set length = size(past_cache, axis)
@set rows = size(update, axis)
@if has(write_indices)
@do check_same(write_indices, 0, past_cache, 0)
@if not around
%yes = arith.constant true
%start = tensor.from_elements %yes : tensor<i1>
@let i64 %last = i64(index ${length}) - i64(index ${rows})
%checked = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
    iterator_types = ["reduction"]}
    ins(%write_indices : ${type(write_indices)}) outs(%start : tensor<i1>) {
^bb0(%first: i64, %so_far: i1):
@let i1(i64) %inside = %first >= 0 && %first <= %last
  %both = arith.andi %inside, %so_far : i1
  linalg.yield %both : i1
} -> tensor<i1>
%holds = tensor.extract %checked[] : tensor<i1>
cf.assert %holds, "${place()}: rows do not fit the cache at the place where they are to be written"
@end
@end
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@for i in range(r)
%v${i} = scf.for %i${i} = %c0 to ${size(update, i)} step %c1 iter_args(%t${i} = ${i == 0 ? "%past_cache" : "%t" + (i - 1)}) -> (${T}) {
@end
@if has(write_indices)
  %raw = tensor.extract %write_indices[%i0] : ${type(write_indices)}
@if around
@let i64 %turns = i64(index ${length})
@let i64 %rest = rem(%raw, %turns)
@let i64 %first = %rest < 0 ? %rest + %turns : %rest
@else
@let i64 %first = %raw
@end
@let index %row = index(i64 %first) + %i${axis}
@else
@let index %row = %i${axis}
@end
@let index %at = %row >= ${length} ? %row - ${length} : %row
  %new = tensor.extract %update[${["%i" + i for i in range(r)]}] : ${type(update)}
  %v${r} = tensor.insert %new into %t${r - 1}[${[i == axis ? "%at" : "%i" + i for i in range(r)]}] : ${T}
@for i in range(r)
  scf.yield %v${r - i} : ${T}
}
@end
%present_cache = tensor.cast %v0 : ${T} to ${type(present_cache)}
