// y (f64) = number i (an index) of the uniform random numbers of this node; drawn: those of a node with a
// seed, a constant tensor of `count`, or none.
@macro i, drawn, count, y
@if known(drawn)
${y} = tensor.extract ${drawn}[${i}] : ${tensor([count], "f64")}
@else
@let i64 %number = i64(index ${i})
@let i64 %counter = shr(%number, 1)
@do philox_block("%counter", ["%a", "%b", "%c", "%d"])
@let i1(i64) %is_first = and(%number, 1) == 0
@let u32 %high = %is_first ? %a : %c
@let u32 %low = %is_first ? %b : %d
@do uniform_of("%high", "%low", y)
@end
