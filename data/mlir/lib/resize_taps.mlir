// One axis of Resize, with as many taps for each element as the filter is wide: 2 or 4. `from` has
// type `kind` and elements of type F, sums are of type T, the result has sizes `next` and elements of
// type G. Half of the taps lie before the coordinate, half behind or at it.
@macro from, kind, F, T, G, next, after, axis, f, how, to
@set r = len(next)
@set taps = range(attr("mode") == "cubic" ? 4 : 2)
@set h = len(taps) / 2
@set crop = how == "tf_crop_and_resize"
@set edges = attr("exclude_outside") != 0
@set places = tensor([next[axis]], "index")
@set weights = tensor([next[axis]], T)
@set length = known(next[axis]) ? [] : [f[5]]
@let i1(f64) %is_one = ${f[2]} == 1 && ${f[0]} == ${f[1]}${crop ? " && " + f[3] + " == 0 && " + f[4] + " == 1" : ""}
%room = tensor.empty(${length}) : ${places}
%heavy = tensor.empty(${length}) : ${weights}
@let f64 %a = ${attr("cubic_coeff_a")}
@let index %most = index(f64 ${f[0]}) - 1
%t:${2 * len(taps)} = linalg.generic {indexing_maps = [${["affine_map<(d0) -> (d0)>" for t in range(2 * len(taps))]}], iterator_types = ["parallel"]}
    outs(${["%room" for t in taps] + ["%heavy" for t in taps]} : ${[places for t in taps] + [weights for t in taps]}) {
^bb0(${["%p" + t + ": index" for t in taps] + ["%w" + t + ": " + T for t in taps]}):
  %at = linalg.index 0 : index
@do resize_place(how, "%at", f[0], f[1], f[2], f[3], f[4], "%x", "%outside")
@let f64 %first = ceil(%x) - ${h}
@let index %begin = index(f64 %first)
@for t in taps
@let index %i${t} = %begin + ${t}
@let f64 %distance${t} = f64(index %i${t}) - %x
@do resize_filter(attr("mode"), "%a", "%distance" + t, "%value" + t)
@let index %inside${t} = min(max(%i${t}, 0), %most)
@if edges
@let i1(index) %kept${t} = %inside${t} == %i${t}
@let f64 %zero${t} = 0
  %raw${t} = arith.select %kept${t}, %value${t}, %zero${t} : f64
@end
@let index %one${t} = min(%at, %most)
@if crop and t == 0
@let index %none = -1
  %place${t} = arith.select %outside, %none, %inside${t} : index
  %y${t} = arith.select %is_one, %one${t}, %place${t} : index
@else
  %y${t} = arith.select %is_one, %one${t}, %inside${t} : index
@end
@end
@if edges
@let f64 %sum = ${join(["%raw" + t for t in taps], " + ")}
@let f64 %total = %sum == 0 ? 1 : %sum
@end
@for t in taps
@if edges
@let f64 %share${t} = %raw${t} / %total
@end
@let ${T} %z${t} = ${T}(f64 ${edges ? "%share" + t : "%value" + t})
@end
  linalg.yield ${["%y" + t for t in taps] + ["%z" + t for t in taps]} : ${["index" for t in taps] + [T for t in taps]}
} -> (${[places for t in taps] + [weights for t in taps]})
@set all = join(["d" + b for b in range(r)], ", ")
@set R = tensor(next, G)
%empty = tensor.empty(${[after[b] for b in range(r) if known(after[b])]}) : ${R}
${to} = linalg.generic {
    indexing_maps = [${["affine_map<(" + all + ") -> (d" + axis + ")>" for t in range(2 * len(taps))] + ["affine_map<(" + all + ") -> (" + all + ")>"]}],
    iterator_types = [${[quote("parallel") for b in range(r)]}]}
    ins(${["%t" + "#" + t for t in range(2 * len(taps))]} : ${[places for t in taps] + [weights for t in taps]}) outs(%empty : ${R}) {
^bb0(${["%g" + t + ": index" for t in taps] + ["%v" + t + ": " + T for t in taps]}, %old: ${bare(G)}):
@for b in range(r)
@if b != axis
  %d${b} = linalg.index ${b} : index
@end
@end
@for t in taps
@if crop and t == 0
@let index %q${t} = max(%g${t}, 0)
@end
@set spot = crop and t == 0 ? "%q" + t : "%g" + t
  %e${t} = tensor.extract ${from}[${[b == axis ? spot : "%d" + b for b in range(r)]}] : ${kind}
@let ${T} %f${t} = ${T}(${F} %e${t})
@end
@let ${T} %weighted = ${join(["%v" + t + " * " + "%f" + t for t in taps], " + ")}
  %whole = arith.select %is_one, %f0, %weighted : ${T}
@if crop
@let i1(index) %beyond = %g0 < 0
@let ${T} %outer = ${attr("extrapolation_value")}
  %held = arith.select %beyond, %outer, %whole : ${T}
@end
@do store_real(crop ? "%held" : "%whole", T, G, "%stored")
  linalg.yield %stored : ${bare(G)}
} -> ${R}
