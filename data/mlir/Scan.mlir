// A body that is run over the slices of its inputs, with states, and gives slices of its outputs.
@set in = body_inputs("body")
@set out = body_results("body")
@set given = initial_state_and_scan_inputs
@set results = final_state_and_scan_outputs
@set m = attr("num_scan_inputs")
@set n = len(given) - m
@set list = attr("scan_input_axes")
@set axes = [known(list) and k < len(list) ? (list[k] < 0 ? list[k] + rank(given[n + k]) : list[k]) : 0 for k in range(m)]
@set list = attr("scan_input_directions")
@set backward = [known(list) and k < len(list) and list[k] != 0 for k in range(m)]
@set scans = [k for k in range(n, len(results)) if has(results[k])]
@set slices = [out[k] for k in scans]
@set list = attr("scan_output_axes")
@set out_axes = [known(list) and k - n < len(list) ? (list[k - n] < 0 ? list[k - n] + rank(results[k]) : list[k - n]) : 0 for k in scans]
@set list = attr("scan_output_directions")
@set out_backward = [known(list) and k - n < len(list) and list[k - n] != 0 for k in scans]
@let index %zero = 0
@let index %one = 1
@let index %trips = ${size(given[n], axes[0])}
@for k in range(1, m)
@if not same(given[n], axes[0], given[n + k], axes[k])
@let i1(index) %fits${k} = %trips == ${size(given[n + k], axes[k])}
cf.assert %fits${k}, "${place()}: scan inputs have different lengths"
@end
@end
// A size of a slice that is not a number may be that of an operand; otherwise room for slices is
// made when the first is there.
@set stacked = [[a == out_axes[k] ? dim(results[scans[k]], a) : dim(slices[k], a < out_axes[k] ? a : a - 1) for a in range(rank(slices[k]) + 1)] for k in range(len(slices))]
@set lengths = [[a == out_axes[k] ? "%trips" : size_from(slices[k], a < out_axes[k] ? a : a - 1, given) for a in range(rank(slices[k]) + 1)] for k in range(len(slices))]
@set placed = [not (none in l) for l in lengths]
@set stacked = [placed[k] ? stacked[k] : [a == out_axes[k] ? none : stacked[k][a] for a in range(len(stacked[k]))] for k in range(len(slices))]
// States whose size no iteration changes are updated in place.
@set keeps = [out[j] != in[j] and not (0 in [same(out[j], a, in[j], a) for a in range(rank(in[j]))]) for j in range(n)]
@set types = [type(in[j]) for j in range(n)] + [tensor(stacked[k], elem(slices[k])) for k in range(len(slices))]
@for j in range(n)
@do first_state(given[j], types[j], keeps[j], "%state" + j)
@end
@for k in range(len(slices))
@if placed[k]
%state${n + k} = tensor.empty(${[lengths[k][a] for a in range(len(stacked[k])) if not known(stacked[k][a])]}) : ${types[n + k]}
@else
@do no_slices(stacked[k], elem(slices[k]), "%state" + (n + k))
@end
@end
@set each = range(len(types))
%end:${len(types)} = scf.for %i = %zero to %trips step %one iter_args(${["%now" + j + " = " + "%state" + j for j in each]}) -> (${types}) {
@let index %last = %trips - 1 - %i
@for j in range(n)
  ${in[j]} = tensor.cast %now${j} : ${types[j]} to ${types[j]}
@end
@for k in range(m)
@set x = given[n + k]
@set at = [a == axes[k] ? (backward[k] ? "%last" : "%i") : 0 for a in range(rank(x))]
@set shape = [a == axes[k] ? 1 : known(dim(x, a)) ? dim(x, a) : size(x, a) for a in range(rank(x))]
@set T = tensor([dim(x, a) for a in range(rank(x)) if a != axes[k]], elem(x))
  %slice${k} = tensor.extract_slice ${x}[${at}] [${shape}] [${[1 for a in at]}] : ${type(x)} to ${T}
  ${in[n + k]} = tensor.cast %slice${k} : ${T} to ${type(in[n + k])}
@end
@set done = body("body")
@set out = body_results("body")
@set slices = [out[k] for k in scans]
@for k in range(len(slices))
@do stack_slice(slices[k], "%now" + (n + k), stacked[k], out_axes[k], out_backward[k] ? "%last" : "%i", "%i", "%trips", placed[k], "%next" + (n + k))
@end
@for j in range(n)
@do next_state(out[j], in[j], "%now" + j, "%next" + j, keeps[j])
@end
  scf.yield ${["%next" + j for j in each]} : ${types}
}
@for j in range(n)
@if has(results[j])
${results[j]} = tensor.cast %end#${j} : ${types[j]} to ${type(results[j])}
@end
@end
@for k in range(len(slices))
${results[scans[k]]} = tensor.cast %end#${n + k} : ${types[n + k]} to ${type(results[scans[k]])}
@end
