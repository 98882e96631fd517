// In training elements stay with probability 1 - ratio and are scaled up, the others become 0; else nothing
// happens to them.
@set mode = has(training_mode) ? const(training_mode) : [0]
@set off = known(mode) and mode[0] == 0
@set r = rank(data)
@set all = ["d" + i for i in range(r)]
@set T = elem(data)
@set B = has(mask) ? type(mask) : tensor(dims(data), "i1")
@if off
@if has(output)
%output = tensor.cast %data : ${type(data)} to ${type(output)}
@end
@if has(mask)
@let i1 %yes = true
%mask_empty = tensor.empty(${unknown_sizes(data)}) : ${B}
%mask = linalg.fill ins(%yes : i1) outs(%mask_empty : ${B}) -> ${B}
@end
@else
@set fixed = len([d for d in dims(data) if not known(d)]) == 0
@set count = fixed ? product(dims(data)) : none
@set is_table = draws_are_known(count)
@set numbers = is_table ? draws(false, count) : none
@do random_place()
@do count_of(sizes(data), "%count")
@if has(ratio)
%ratio_given = tensor.extract %ratio[] : ${type(ratio)}
@do cast_element("%ratio_given", elem(ratio), "f64", true, "up", "%share")
@else
@let f64 %share = 0.5
@end
%training = tensor.extract %training_mode[] : ${type(training_mode)}
@let i1(f64) %some = %share != 0
@let i1 %drops = and(%training, %some)
@let i1(f64) %sane = %share >= 0 && %share < 1
@let i1 %idle = xor(%training, true)
@let i1 %fine = or(%sane, %idle)
cf.assert %fine, "${place()}: the ratio must be at least 0 and below 1"
@let f64 %factor = 1 / (1 - %share)
%output_empty = tensor.empty(${unknown_sizes(data)}) : ${type(data)}
%mask_empty = tensor.empty(${unknown_sizes(data)}) : ${B}
@if known(random)
@let index %none = 0
@let index %taken = %drops ? %count : %none
@let i64 %moved = ${random[1]} + i64(index %taken)
@do random_moved("%moved")
@end
%both:2 = scf.if %drops -> (${type(data)}, ${B}) {
@if seeded() and not is_table
@do twister(false, "%count", "%numbers")
@set numbers = "%numbers"
@end
  %dropped:2 = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in range(r)]}]}
    ins(%data : ${type(data)}) outs(%output_empty, %mask_empty : ${type(data)}, ${B}) {
  ^bb0(%element: ${scalar(data)}, %old: ${scalar(data)}, %old_mask: i1):
@for i in range(r)
    %d${i} = linalg.index ${i} : index
@end
@do linear_index(data, ["%d" + i for i in range(r)], "%at")
@do uniform_at("%at", numbers, is_table ? count : none, random, "%number")
@let i1(f64) %stays = %number >= %share
@set W = T == "f64" ? "f64" : "f32"
@do cast_element("%element", T, W, true, "up", "%wide")
@let ${W} %raised = %wide * ${W}(f64 %factor)
@let ${W} %either = %stays ? %raised : 0
@do cast_element("%either", W, T, true, "up", "%result")
    linalg.yield %result, %stays : ${scalar(data)}, i1
  } -> (${type(data)}, ${B})
  scf.yield %dropped#0, %dropped#1 : ${type(data)}, ${B}
} else {
  %copied = linalg.copy ins(%data : ${type(data)}) outs(%output_empty : ${type(data)}) -> ${type(data)}
@let i1 %always = true
  %filled = linalg.fill ins(%always : i1) outs(%mask_empty : ${B}) -> ${B}
  scf.yield %copied, %filled : ${type(data)}, ${B}
}
@if has(output)
%output = tensor.cast %both#0 : ${type(data)} to ${type(output)}
@end
@if has(mask)
%mask = tensor.cast %both#1 : ${B} to ${B}
@end
@end
