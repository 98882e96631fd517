// out, a result of the node whose sizes are those of `like` (or known), = random numbers times scale plus
// shift: normal ones, or uniform ones from 0 to 1.
@macro out, like, normal, scale, shift
@set r = rank(out)
@set all = ["d" + i for i in range(r)]
@set fixed = len([d for d in dims(out) if not known(d)]) == 0
@set count = fixed ? product(dims(out)) : none
@if seeded() and not fixed
@refuse "random numbers with a seed are compiled for tensors of known size only"
@end
@set shape = fixed ? [] : [size(like, i) for i in range(r) if not known(dim(out, i))]
@set numbers = seeded() ? draws(normal, count) : none
%empty = tensor.empty(${shape}) : ${type(out)}
@if normal and not seeded()
// numpy's legacy polar method: points in the unit disc, not its centre, each of one block of words, give
// two numbers.
@if fixed
@let index %count = ${count}
@else
@let index %count0 = 1
@for i in range(r)
@set n = known(dim(out, i)) ? dim(out, i) : size(like, i)
@let index %count${i + 1} = %count${i} * ${n}
@end
@let index %count = %count${r}
@end
@let index %none = 0
@let index %step = 1
@let index %pairs = ceildiv(%count, 2)
@let index %room = %pairs * 2
@set N = tensor([none], "f64")
%numbers_empty = tensor.empty(%room) : ${N}
@let i64 %begin = 0
%drawn:2 = scf.for %pair = %none to %pairs step %step iter_args(%so_far = %numbers_empty, %counter = %begin) -> (${N}, i64) {
@let f64 %nowhere = 2
  %point:4 = scf.while (%block = %counter, %x_in = %nowhere, %y_in = %nowhere, %r_in = %nowhere) : (i64, f64, f64, f64) -> (i64, f64, f64, f64) {
@let i1(f64) %again = %r_in >= 1 || %r_in == 0
    scf.condition(%again) %block, %x_in, %y_in, %r_in : i64, f64, f64, f64
  } do {
  ^bb0(%number: i64, %x_old: f64, %y_old: f64, %r_old: f64):
@do philox_block("%number", ["%a", "%b", "%c", "%d"])
@do uniform_of("%a", "%b", "%u")
@do uniform_of("%c", "%d", "%v")
@let f64 %x_new = 2 * %u - 1
@let f64 %y_new = 2 * %v - 1
@let f64 %r_new = %x_new * %x_new + %y_new * %y_new
@let i64 %next = %number + 1
    scf.yield %next, %x_new, %y_new, %r_new : i64, f64, f64, f64
  }
@let f64 %far = sqrt(-2 * log(%point#3) / %point#3)
@let f64 %first = %far * %point#2
@let f64 %second = %far * %point#1
@let index %even = %pair * 2
@let index %odd = %even + 1
  %half = tensor.insert %first into %so_far[%even] : ${N}
  %whole = tensor.insert %second into %half[%odd] : ${N}
  scf.yield %whole, %point#0 : ${N}, i64
}
@end
${out} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>], iterator_types = [${[quote("parallel") for i in range(r)]}]}
    outs(%empty : ${type(out)}) {
^bb0(%old: ${scalar(out)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@let index %at0 = 0
@for i in range(r)
@set n = known(dim(out, i)) ? dim(out, i) : size(like, i)
@let index %at${i + 1} = %at${i} * ${n} + %d${i}
@end
@if normal and not seeded()
  %draw = tensor.extract %drawn#0[%at${r}] : ${N}
@else
@do uniform_at("%at" + r, numbers, count, "%draw")
@end
@do scale_draw("%draw", elem(out), scale, shift, "%result")
  linalg.yield %result : ${scalar(out)}
} -> ${type(out)}
