// out, a result of the node whose sizes are those of `like` (or known), = random numbers times scale plus
// shift: normal ones, or uniform ones from 0 to 1.
@macro out, like, normal, scale, shift
@set r = rank(out)
@set all = ["d" + i for i in range(r)]
@set fixed = len([d for d in dims(out) if not known(d)]) == 0
@set count = fixed ? product(dims(out)) : none
@set is_table = draws_are_known(count)
@set extents = [known(dim(out, i)) ? dim(out, i) : size(like, i) for i in range(r)]
@set shape = [extents[i] for i in range(r) if not known(dim(out, i))]
@set N = tensor([is_table ? count : none], "f64")
@set numbers = is_table ? draws(normal, count) : none
@do random_place()
%empty = tensor.empty(${shape}) : ${type(out)}
@do count_of(extents, "%count")
@let index %first = 0
@if seeded() and not is_table
@do twister(normal, "%count", "%numbers")
@set numbers = "%numbers"
@elif normal and not seeded()
// numpy's legacy polar method: points in the unit disc, not its centre, each of one block of words, give
// two numbers. The place in the random state is twice the number of blocks, and one more where the second
// number of the last is still to come: that block is then made again.
@let index %none = 0
@let index %step = 1
@if known(random)
@let i64 %left = and(${random[1]}, 1)
@let i64 %blocks = shr(${random[1]}, 1)
@let i64 %begin = %blocks - %left
@let index %skipped = index(i64 %left)
@else
@let i64 %begin = 0
@let index %skipped = 0
@end
@let index %wanted = %count + %skipped
@let index %pairs = ceildiv(%wanted, 2)
@let index %room = %pairs * 2
%numbers_empty = tensor.empty(%room) : ${N}
%drawn:2 = scf.for %pair = %none to %pairs step %step iter_args(%so_far = %numbers_empty, %counter = %begin) -> (${N}, i64) {
@let f64 %nowhere = 2
  %point:4 = scf.while (%block = %counter, %x_in = %nowhere, %y_in = %nowhere, %r_in = %nowhere) : (i64, f64, f64, f64) -> (i64, f64, f64, f64) {
@let i1(f64) %again = %r_in >= 1 || %r_in == 0
    scf.condition(%again) %block, %x_in, %y_in, %r_in : i64, f64, f64, f64
  } do {
  ^bb0(%number: i64, %x_old: f64, %y_old: f64, %r_old: f64):
@do philox_block("%number", known(random) ? random[0] : none, ["%a", "%b", "%c", "%d"])
@do uniform_of("%a", "%b", "%u")
@do uniform_of("%c", "%d", "%v")
@let f64 %x_new = 2 * %u - 1
@let f64 %y_new = 2 * %v - 1
@let f64 %r_new = %x_new * %x_new + %y_new * %y_new
@let i64 %next = %number + 1
    scf.yield %next, %x_new, %y_new, %r_new : i64, f64, f64, f64
  }
@let f64 %far = sqrt(-2 * log(%point#3) / %point#3)
@let f64 %before = %far * %point#2
@let f64 %behind = %far * %point#1
@let index %even = %pair * 2
@let index %odd = %even + 1
  %half = tensor.insert %before into %so_far[%even] : ${N}
  %whole = tensor.insert %behind into %half[%odd] : ${N}
  scf.yield %whole, %point#0 : ${N}, i64
}
@set numbers = "%drawn#0"
@if known(random)
@let i64 %is_left = and(i64(index %wanted), 1)
@let i64 %moved = %drawn#1 * 2 + %is_left
@do random_moved("%moved")
@end
@elif known(random)
@let i64 %moved = ${random[1]} + i64(index %count)
@do random_moved("%moved")
@end
@set skip = normal and not seeded() ? "%skipped" : "%first"
${out} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>], iterator_types = [${[quote("parallel") for i in range(r)]}]}
    outs(%empty : ${type(out)}) {
^bb0(%old: ${scalar(out)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@let index %at0 = 0
@for i in range(r)
@let index %at${i + 1} = %at${i} * ${extents[i]} + %d${i}
@end
@let index %at = %at${r} + ${skip}
@do uniform_at("%at", numbers, is_table ? count : none, random, "%draw")
@do scale_draw("%draw", elem(out), scale, shift, "%result")
  linalg.yield %result : ${scalar(out)}
} -> ${type(out)}
