// scores (f64) and counted (i1), tensors with `targets` columns, = what the leaves that each row of x comes
// to give to each target, joined as `join` says (AVERAGE, SUM, MIN or MAX), and whether there was any.
// The trees are tables, walked from their roots; prefix names the attributes of the weights.
@macro x, prefix, targets, join, rows, n, scores, counted
@set f = forest(prefix, targets)
@set F = tensor([rows, targets], "f64")
@set B = tensor([rows, targets], "i1")
@set I = tensor([f[4]], "i32")
@set D = tensor([f[4]], "f64")
@set M = tensor([f[4]], "i8")
@set sizes = known(rows) ? [] : [n]
@set features = dim(x, rank(x) - 1)
@if known(features) and features <= f[1]
@refuse "its trees read feature " + f[1] + " of rows with " + features
@elif not known(features)
@set have = size(x, rank(x) - 1)
@let i1(index) %fits = ${have} > ${f[1]}
cf.assert %fits, "${place()}: its trees read features that a row of its input does not have"
@end
@let index %none = 0
@let index %step = 1
@let index %trees = ${f[0]}
@if known(rows)
@let index %rows = ${rows}
@else
@let index %rows = ${n}
@end
@let f64 %start = ${join == "MIN" ? "inf" : join == "MAX" ? "least" : "0"}
@let i1 %nothing = false
%scores_empty = tensor.empty(${sizes}) : ${F}
%counted_empty = tensor.empty(${sizes}) : ${B}
%begun = linalg.fill ins(%start : f64) outs(%scores_empty : ${F}) -> ${F}
%untouched = linalg.fill ins(%nothing : i1) outs(%counted_empty : ${B}) -> ${B}
%all:2 = scf.for %row = %none to %rows step %step iter_args(%sums = %begun, %marks = %untouched) -> (${F}, ${B}) {
  %of_row:2 = scf.for %tree = %none to %trees step %step iter_args(%sums_in = %sums, %marks_in = %marks) -> (${F}, ${B}) {
    %root_number = tensor.extract ${f[7]}[%tree] : ${tensor([f[0]], "i32")}
@let index %root = index(i32 %root_number)
    %leaf = scf.while (%at = %root) : (index) -> index {
      %mode_here = tensor.extract ${f[10]}[%at] : ${M}
@let i1(i8) %goes_on = %mode_here != 7
      scf.condition(%goes_on) %at : index
    } do {
    ^bb0(%here: index):
      %feature_number = tensor.extract ${f[8]}[%here] : ${I}
@let index %feature = index(i32 %feature_number)
      %element = tensor.extract ${x}[${rank(x) == 2 ? ["%row", "%feature"] : ["%feature"]}] : ${type(x)}
@let f64 %value = f64(${elem(x)} %element)
      %limit = tensor.extract ${f[9]}[%here] : ${D}
@if len(f[2]) > 1
      %mode = tensor.extract ${f[10]}[%here] : ${M}
@end
@set signs = ["<=", "<", ">=", ">", "==", "!="]
@let i1 %passed0 = false
@for k in range(len(f[2]))
@set m = f[2][k]
@if m == 6
      %member_begin = tensor.extract ${f[14]}[%here] : ${I}
      %member_count = tensor.extract ${f[15]}[%here] : ${I}
@let index %from = index(i32 %member_begin)
@let index %to = %from + index(i32 %member_count)
      %test${k} = scf.for %place = %from to %to step %step iter_args(%is_in = %nothing) -> (i1) {
        %member = tensor.extract ${f[18]}[%place] : ${tensor([f[6]], "f64")}
@let i1(f64) %is_it = %member == %value
@let i1 %is_in_now = or(%is_in, %is_it)
        scf.yield %is_in_now : i1
      }
@else
@let i1(f64) %test${k} = %value ${signs[m]} %limit
@end
@if len(f[2]) > 1
@let i1(i8) %is_mode${k} = %mode == ${m}
@let i1 %passes${k} = and(%test${k}, %is_mode${k})
@let i1 %passed${k + 1} = or(%passed${k}, %passes${k})
@else
@let i1 %passed${k + 1} = or(%passed${k}, %test${k})
@end
@end
@if f[3]
      %missing_byte = tensor.extract ${f[11]}[%here] : ${M}
@let i1(i8) %missing_passes = %missing_byte != 0
@let i1(f64) %is_missing = %value != %value
@let i1 %excused = and(%missing_passes, %is_missing)
@let i1 %holds = or(%passed${len(f[2])}, %excused)
@else
@let i1 %holds = or(%passed${len(f[2])}, %nothing)
@end
      %left = tensor.extract ${f[12]}[%here] : ${I}
      %right = tensor.extract ${f[13]}[%here] : ${I}
@let i32 %next_number = %holds ? %right : %left
@let index %next = index(i32 %next_number)
      scf.yield %next : index
    }
    %weight_begin = tensor.extract ${f[14]}[%leaf] : ${I}
    %weight_count = tensor.extract ${f[15]}[%leaf] : ${I}
@let index %first = index(i32 %weight_begin)
@let index %end = %first + index(i32 %weight_count)
@if f[5] > 0
    %of_leaf:2 = scf.for %w = %first to %end step %step iter_args(%sums_now = %sums_in, %marks_now = %marks_in) -> (${F}, ${B}) {
      %target_number = tensor.extract ${f[16]}[%w] : ${tensor([f[5]], "i32")}
@let index %target = index(i32 %target_number)
      %weight = tensor.extract ${f[17]}[%w] : ${tensor([f[5]], "f64")}
      %so_far = tensor.extract %sums_now[%row, %target] : ${F}
@if join == "MIN"
@let f64 %joined = %weight < %so_far ? %weight : %so_far
@elif join == "MAX"
@let f64 %joined = %weight > %so_far ? %weight : %so_far
@else
@let f64 %joined = %so_far + %weight
@end
@let i1 %yes = true
      %sums_next = tensor.insert %joined into %sums_now[%row, %target] : ${F}
      %marks_next = tensor.insert %yes into %marks_now[%row, %target] : ${B}
      scf.yield %sums_next, %marks_next : ${F}, ${B}
    }
    scf.yield %of_leaf#0, %of_leaf#1 : ${F}, ${B}
@else
    scf.yield %sums_in, %marks_in : ${F}, ${B}
@end
  }
  scf.yield %of_row#0, %of_row#1 : ${F}, ${B}
}
%final_empty = tensor.empty(${sizes}) : ${F}
${scores} = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%all#0, %all#1 : ${F}, ${B}) outs(%final_empty : ${F}) {
^bb0(%sum: f64, %has: i1, %old: f64):
@if join == "AVERAGE"
@let f64 %mean = %sum / ${f[0]}
@else
@let f64 %mean = %sum
@end
@let f64 %some = %has ? %mean : 0
  linalg.yield %some : f64
} -> ${F}
%marks_empty = tensor.empty(${sizes}) : ${B}
${counted} = linalg.copy ins(%all#1 : ${B}) outs(%marks_empty : ${B}) -> ${B}
