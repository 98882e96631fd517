// power (i64) = x to the power e, both i64, modulo 2^64. A negative power of an integer is 0 but for 1
// and -1; of 0 it has no value, and is 0 here.
@macro x, e, power
@let i64 %one = 1
@let i64 %none = 0
%loop:3 = scf.while (%left = ${e}, %product = %one, %square = ${x}) : (i64, i64, i64) -> (i64, i64, i64) {
  %more = arith.cmpi sgt, %left, %none : i64
  scf.condition(%more) %left, %product, %square : i64, i64, i64
} do {
^bb0(%now: i64, %so_far: i64, %factor: i64):
@let i1(i64) %odd = and(%now, 1) != 0
@let i64 %times = %odd ? %so_far * %factor : %so_far
@let i64 %next = %factor * %factor
@let i64 %rest = shr(%now, 1)
  scf.yield %rest, %times, %next : i64, i64, i64
}
@let i64 %sign = and(${e}, 1) != 0 ? -1 : 1
@let i64 %inverse = ${x} == 1 ? 1 : ${x} == -1 ? %sign : 0
@let i64 ${power} = ${e} < 0 ? %inverse : %loop#1
