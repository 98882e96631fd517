// Outcomes drawn with the probabilities whose logarithms each row holds, in f64.
@set rows = dim(input, 0)
@set samples = attr("sample_size")
@set n = size(input, 0)
@set outcomes = size(input, 1)
@set S = tensor([rows, dim(input, 1)], "f64")
@set V = tensor([rows], "f64")
@set U = tensor([rows, samples], "f64")
@set I = tensor([rows, samples], "i64")
@set sizes = known(rows) ? [] : [n]
@set T = elem(input)
@set is_table = draws_are_known(known(rows) ? rows * samples : none)
@set numbers = is_table ? draws(false, rows * samples) : none
@do random_place()
@let index %wanted = ${n} * ${samples}
@if seeded() and not is_table
@do twister(false, "%wanted", "%numbers")
@set numbers = "%numbers"
@elif known(random)
@let i64 %moved = ${random[1]} + i64(index %wanted)
@do random_moved("%moved")
@end
%per_row = tensor.empty(${sizes}) : ${V}
@let f64 %least = least
%lowest = linalg.fill ins(%least : f64) outs(%per_row : ${V}) -> ${V}
%largest = linalg.generic {
    indexing_maps = [affine_map<(r, o) -> (r, o)>, affine_map<(r, o) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%input : ${type(input)}) outs(%lowest : ${V}) {
^bb0(%element: ${scalar(input)}, %so_far: f64):
@do cast_element("%element", T, "f64", true, "up", "%wide")
@let f64 %larger = %wide > %so_far ? %wide : %so_far
  linalg.yield %larger : f64
} -> ${V}
// Sums of probabilities up to each outcome, not divided by the total.
@let index %none = 0
@let index %step = 1
%sums_empty = tensor.empty(${unknown_sizes(input)}) : ${S}
%begun = linalg.fill ins(%least : f64) outs(%sums_empty : ${S}) -> ${S}
@let i1 %yes = true
%all:2 = scf.for %row = %none to ${n} step %step iter_args(%sums_in = %begun, %fine_in = %yes) -> (${S}, i1) {
  %most = tensor.extract %largest[%row] : ${V}
@let f64 %nothing = 0
  %of_row:2 = scf.for %o = %none to ${outcomes} step %step iter_args(%sums_now = %sums_in, %total_in = %nothing) -> (${S}, f64) {
    %log = tensor.extract %input[%row, %o] : ${type(input)}
@do cast_element("%log", T, "f64", true, "up", "%wide_log")
@let f64 %total_next = %total_in + exp(%wide_log - %most)
    %sums_next = tensor.insert %total_next into %sums_now[%row, %o] : ${S}
    scf.yield %sums_next, %total_next : ${S}, f64
  }
@let i1(f64) %sane = %of_row#1 > 0 && %of_row#1 < inf
@let i1 %fine_next = and(%fine_in, %sane)
  scf.yield %of_row#0, %fine_next : ${S}, i1
}
@if samples > 0
cf.assert %all#1, "${place()}: a row has no probabilities to draw from"
@end
%drawn_empty = tensor.empty(${sizes}) : ${U}
@let index %last_place = ${outcomes} - 1
%drawn = linalg.generic {
    indexing_maps = [affine_map<(r, s) -> (r, s)>], iterator_types = ["parallel", "parallel"]}
    outs(%drawn_empty : ${U}) {
^bb0(%old: f64):
  %r = linalg.index 0 : index
  %s = linalg.index 1 : index
@let index %at = %r * ${samples} + %s
@do uniform_at("%at", numbers, is_table ? rows * samples : none, random, "%number")
  %total = tensor.extract %all#0[%r, %last_place] : ${S}
@let f64 %scaled = %number * %total
  linalg.yield %scaled : f64
} -> ${U}
// The first outcome whose sum is above the number: there are as many before it as are not.
%counts_empty = tensor.empty(${sizes}) : ${I}
@let i64 %zero = 0
%zeros = linalg.fill ins(%zero : i64) outs(%counts_empty : ${I}) -> ${I}
%counts = linalg.generic {
    indexing_maps = [affine_map<(r, s, o) -> (r, s)>, affine_map<(r, s, o) -> (r, o)>, affine_map<(r, s, o) -> (r, s)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%drawn, %all#0 : ${U}, ${S}) outs(%zeros : ${I}) {
^bb0(%number: f64, %sum: f64, %count: i64):
@let i1(f64) %above = %sum > %number
@let i64 %more = %above ? 0 : 1
@let i64 %next = %count + %more
  linalg.yield %next : i64
} -> ${I}
%output_empty = tensor.empty(${sizes}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(r, s) -> (r, s)>, affine_map<(r, s) -> (r, s)>], iterator_types = ["parallel", "parallel"]}
    ins(%counts : ${I}) outs(%output_empty : ${type(output)}) {
^bb0(%before: i64, %old: ${scalar(output)}):
@let i64 %last = i64(index %last_place)
@let i64 %outcome = min(%before, %last)
@let ${elem(output)} %result = ${elem(output)}(i64 %outcome)
  linalg.yield %result : ${scalar(output)}
} -> ${type(output)}
