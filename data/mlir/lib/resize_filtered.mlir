// One axis of Resize with antialiasing, whose filter is as wide as the scale asks for; see
// resize_taps for the operands. The weights of an element add up to 1; those of an element that is
// extrapolated are 0.
@macro from, kind, F, T, G, next, after, axis, f, how, to
@set r = len(next)
@set crop = how == "tf_crop_and_resize"
@set reach = attr("mode") == "cubic" ? 2 : 1
@let f64 %a = ${attr("cubic_coeff_a")}
@let i1(f64) %is_one = ${f[2]} == 1 && ${f[0]} == ${f[1]}${crop ? " && " + f[3] + " == 0 && " + f[4] + " == 1" : ""}
@let f64 %stretch = ${f[2]} < 1 ? 1 / ${f[2]} : 1
@let f64 %unit = 1 / %stretch
@let f64 %half = ceil(${reach} * %stretch)
@let index %taps = 2 * index(f64 %half)
@let index %most = index(f64 ${f[0]}) - 1
@set length = known(next[axis]) ? [] : [f[5]]
@set grid = tensor([next[axis], none], "f64")
%room = tensor.empty(${length + ["%taps"]}) : ${grid}
%raw = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%room : ${grid}) {
^bb0(%old: f64):
  %at = linalg.index 0 : index
  %tap = linalg.index 1 : index
@do resize_place(how, "%at", f[0], f[1], f[2], f[3], f[4], "%x", "%outside")
@let f64 %first = ceil(%x) - %half
@let f64 %distance = (%first + f64(index %tap) - %x) * %unit
@do resize_filter(attr("mode"), "%a", "%distance", "%value")
@let f64 %none = 0
@if attr("exclude_outside") != 0
@let index %i = index(f64 %first) + %tap
@let i1(index) %inside = %i >= 0 && %i <= %most
  %kept = arith.select %inside, %value, %none : f64
@end
@set weight = attr("exclude_outside") != 0 ? "%kept" : "%value"
@if crop
  %shown = arith.select %outside, %none, ${weight} : f64
@end
  linalg.yield ${crop ? "%shown" : weight} : f64
} -> ${grid}
@set line = tensor([next[axis]], "f64")
@let f64 %nothing = 0
%blank = tensor.empty(${length}) : ${line}
%clear = linalg.fill ins(%nothing : f64) outs(%blank : ${line}) -> ${line}
%sums = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%raw : ${grid}) outs(%clear : ${line}) {
^bb0(%w: f64, %so_far: f64):
@let f64 %total = %w + %so_far
  linalg.yield %total : f64
} -> ${line}
@set starts = tensor([next[axis]], "index")
%begins = tensor.empty(${length}) : ${starts}
%begin = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%begins : ${starts}) {
^bb0(%old: index):
  %at2 = linalg.index 0 : index
@do resize_place(how, "%at2", f[0], f[1], f[2], f[3], f[4], "%x2", "%outside2")
@let f64 %first2 = ceil(%x2) - %half
@let index %begin2 = index(f64 %first2)
@if crop
// What is extrapolated begins where nothing else does.
@let index %far = -1 - index(f64 ${f[0]}) - %taps - %taps
  %marked = arith.select %outside2, %far, %begin2 : index
@end
  linalg.yield ${crop ? "%marked" : "%begin2"} : index
} -> ${starts}
@set all = join(["d" + b for b in range(r)], ", ")
@set S = tensor(next, T)
@set R = tensor(next, G)
@set open = [after[b] for b in range(r) if known(after[b])]
@let ${T} %start = 0
%sum_empty = tensor.empty(${open}) : ${S}
%sum_clear = linalg.fill ins(%start : ${T}) outs(%sum_empty : ${S}) -> ${S}
%weighted = linalg.generic {
    indexing_maps = [affine_map<(${all}, t) -> (d${axis}, t)>, affine_map<(${all}, t) -> (d${axis})>, affine_map<(${all}, t) -> (d${axis})>, affine_map<(${all}, t) -> (${all})>],
    iterator_types = [${[quote("parallel") for b in range(r)]}, "reduction"]}
    ins(%raw, %sums, %begin : ${grid}, ${line}, ${starts}) outs(%sum_clear : ${S}) {
^bb0(%w: f64, %sum: f64, %from: index, %so_far: ${T}):
@for b in range(r)
@if b != axis
  %d${b} = linalg.index ${b} : index
@end
@end
  %tap = linalg.index ${r} : index
@let index %i = min(max(%from + %tap, 0), %most)
  %e = tensor.extract ${from}[${[b == axis ? "%i" : "%d" + b for b in range(r)]}] : ${kind}
@let f64 %total = %sum == 0 ? 1 : %sum
@let f64 %share = %w / %total
@let ${T} %next = %so_far + ${T}(f64 %share) * ${T}(${F} %e)
  linalg.yield %next : ${T}
} -> ${S}
%empty = tensor.empty(${open}) : ${R}
${to} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (d${axis})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for b in range(r)]}]}
    ins(%weighted, %begin : ${S}, ${starts}) outs(%empty : ${R}) {
^bb0(%w: ${T}, %from: index, %old: ${bare(G)}):
@for b in range(r)
  %d${b} = linalg.index ${b} : index
@end
@let index %own = min(%d${axis}, %most)
  %itself = tensor.extract ${from}[${[b == axis ? "%own" : "%d" + b for b in range(r)]}] : ${kind}
@let ${T} %wide = ${T}(${F} %itself)
  %whole = arith.select %is_one, %wide, %w : ${T}
@if crop
@let i1(index) %beyond = %from < -%most - %taps - %taps
@let ${T} %outer = ${attr("extrapolation_value")}
  %held = arith.select %beyond, %outer, %whole : ${T}
@end
@do store_real(crop ? "%held" : "%whole", T, G, "%stored")
  linalg.yield %stored : ${bare(G)}
} -> ${R}
