// y = running sums or products of x along an axis, in f64 or in integers.
@macro from, axis, to, how
@set r = rank(from)
@set E = elem(from)
@set T = is_float(from) ? "f64" : E
@set numbers = const(axis)
@set a = known(numbers) ? (numbers[0] < 0 ? numbers[0] + r : numbers[0]) : none
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@if not known(a)
@do check_length(axis, 1)
%raw = tensor.extract ${axis}[${["%c0" for i in range(rank(axis))]}] : ${type(axis)}
@let index %given = index(${elem(axis)} %raw)
@let index %along = %given < 0 ? %given + ${r} : %given
@let i1(index) %inside = %along >= 0 && %along < ${r}
cf.assert %inside, "${place()}: its axis is outside the tensor"
@end
@set d = dims(from)
@set kinds = known(a) ? [product(d[0:a]), d[a], product(d[a + 1:])] : [none, none, none]
@do lanes(from, a, "%along", kinds, "%lanes")
@set L = tensor(kinds, E)
%room = tensor.empty(${["%lanes_" + k for k in range(3) if not known(kinds[k])]}) : ${L}
@let ${T} %start = ${how == "sum" ? 0 : 1}
%u0 = scf.for %o = %c0 to %lanes_0 step %c1 iter_args(%t0 = %room) -> (${L}) {
  %u1 = scf.for %i = %c0 to %lanes_2 step %c1 iter_args(%t1 = %t0) -> (${L}) {
    %u2:2 = scf.for %k = %c0 to %lanes_1 step %c1 iter_args(%t2 = %t1, %total = %start) -> (${L}, ${bare(T)}) {
@let index %at = ${attr("reverse") != 0 ? "%lanes_1 - 1 - %k" : "%k"}
      %element = tensor.extract %lanes[%o, %at, %i] : ${L}
@let ${T} %wide = ${T}(${E} %element)
@let ${T} %next = ${how == "sum" ? "%total + %wide" : "%total * %wide"}
@let ${T} %given_out = ${attr("exclusive") != 0 ? "%total" : "%next"}
@if E == "f16" or E == "bf16"
@let f32 %single = f32(f64 %given_out)
@let ${E} %out = ${E}(f32 %single)
@else
@let ${E} %out = ${E}(${T} %given_out)
@end
      %t3 = tensor.insert %out into %t2[%o, %at, %i] : ${L}
      scf.yield %t3, %next : ${L}, ${bare(T)}
    }
    scf.yield %u2#0 : ${L}
  }
  scf.yield %u1 : ${L}
}
@do regrouped("%u" + 0, kinds, scalar(from), to, dims(to), [[range(3), range(r)]], sizes(from))
