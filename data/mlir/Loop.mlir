// A body that is run while a condition holds, at most M times.
@set in = body_inputs("body")
@set out = body_results("body")
@set results = v_final_and_scan_outputs
@set n = len(v_initial)
@set scans = [k for k in range(n, len(results)) if has(results[k])]
@set slices = [out[k + 1] for k in scans]
@let index %zero = 0
@let index %one = 1
@if has(cond)
@do check_length(cond, 1)
%first = tensor.extract %cond[${["%zero" for a in range(rank(cond))]}] : ${type(cond)}
@else
%first = arith.constant true
@end
@if has(M)
@do check_length(M, 1)
%limit = tensor.extract %M[${["%zero" for a in range(rank(M))]}] : ${type(M)}
@else
@let i64 %limit = most
@end
// Where the condition never changes, the number of iterations is known before the first.
@set counted = has(M) and (out[0] == in[1] or const(out[0]) == [1])
@if counted
%least = arith.constant 0 : i64
%most = arith.maxsi %limit, %least : i64
%wanted = arith.select %first, %most, %least : i64
@let index %trips = index(i64 %wanted)
@end
// Carried along: states, then scan outputs, which are slices put together along axis 0.
@set placed = [counted and not (none in dims(s)) for s in slices]
@set stacked = [[none] + dims(s) for s in slices]
// States whose size no iteration changes are updated in place.
@set keeps = [out[1 + j] != in[2 + j] and not (0 in [same(out[1 + j], a, in[2 + j], a) for a in range(rank(in[2 + j]))]) for j in range(n)]
@set types = [type(in[2 + j]) for j in range(n)] + [tensor(stacked[k], elem(slices[k])) for k in range(len(slices))]
@for j in range(n)
@do first_state(v_initial[j], types[j], keeps[j], "%state" + j)
@end
@for k in range(len(slices))
@if placed[k]
%state${n + k} = tensor.empty(%trips) : ${types[n + k]}
@else
@do no_slices(stacked[k], elem(slices[k]), "%state" + (n + k))
@end
@end
@set each = range(len(types))
@if counted
%end:${len(types)} = scf.for %i = %zero to %trips step %one iter_args(${["%now" + j + " = " + "%state" + j for j in each]}) -> (${types}) {
  %turn = arith.index_cast %i : index to i64
  %go = arith.constant true
@else
%start = arith.constant 0 : i64
%end:${len(types) + 2} = scf.while (${["%turn0" + " = " + "%start", "%go0" + " = " + "%first"] + ["%old" + j + " = " + "%state" + j for j in each]}) : (${["i64", "i1"] + types}) -> (${["i64", "i1"] + types}) {
  %less = arith.cmpi slt, %turn0, %limit : i64
  %on = arith.andi %less, %go0 : i1
  scf.condition(%on) ${["%turn0", "%go0"] + ["%old" + j for j in each]} : ${["i64", "i1"] + types}
} do {
^bb0(${["%turn" + ": i64", "%go" + ": i1"] + ["%now" + j + ": " + types[j] for j in each]}):
@let index %i = index(i64 %turn)
@end
  ${in[0]} = tensor.from_elements %turn : ${type(in[0])}
  ${in[1]} = tensor.from_elements %go : ${type(in[1])}
@for j in range(n)
  ${in[2 + j]} = tensor.cast %now${j} : ${types[j]} to ${types[j]}
@end
@set done = body("body")
@set out = body_results("body")
@set slices = [out[k + 1] for k in scans]
@for k in range(len(slices))
@do stack_slice(slices[k], "%now" + (n + k), stacked[k], 0, "%i", "%i", counted ? "%trips" : none, placed[k], "%next" + (n + k))
@end
@for j in range(n)
@do next_state(out[1 + j], in[2 + j], "%now" + j, "%next" + j, keeps[j])
@end
@if counted
  scf.yield ${["%next" + j for j in each]} : ${types}
}
@else
@do check_length(out[0], 1)
  %again = tensor.extract ${out[0]}[${["%zero" for a in range(rank(out[0]))]}] : ${type(out[0])}
@let i64 %turn1 = %turn + 1
  scf.yield ${["%turn1", "%again"] + ["%next" + j for j in each]} : ${["i64", "i1"] + types}
}
@let index %count = index(i64 %end#0)
@end
@set skip = counted ? 0 : 2
@for j in range(n)
@if has(results[j])
${results[j]} = tensor.cast %end#${j + skip} : ${types[j]} to ${type(results[j])}
@end
@end
@for k in range(len(slices))
@set T = types[n + k]
@set whole = "%end" + "#" + (n + k + skip)
@if not counted
@for a in range(1, len(stacked[k]))
%a${k}_${a} = arith.constant ${a} : index
%d${k}_${a} = tensor.dim ${whole}, %a${k}_${a} : ${T}
@end
@set lengths = [a == 0 ? "%count" : known(stacked[k][a]) ? stacked[k][a] : "%d" + k + "_" + a for a in range(len(stacked[k]))]
%cut${k} = tensor.extract_slice ${whole}[${[0 for a in lengths]}] [${lengths}] [${[1 for a in lengths]}] : ${T} to ${T}
@set whole = "%cut" + k
@end
${results[scans[k]]} = tensor.cast ${whole} : ${T} to ${type(results[scans[k]])}
@end
