// y (f64) = number i (an index) of the uniform random numbers that this node draws: of `drawn`, a tensor of
// `count` that a node with a seed has, or else of those behind `random` (lib/random_place.mlir).
@macro i, drawn, count, random, y
@if known(drawn)
${y} = tensor.extract ${drawn}[${i}] : ${tensor([count], "f64")}
@else
@if known(random)
@let i64 %number = ${random[1]} + i64(index ${i})
@else
@let i64 %number = i64(index ${i})
@end
@let i64 %counter = shr(%number, 1)
@do philox_block("%counter", known(random) ? random[0] : none, ["%a", "%b", "%c", "%d"])
@let i1(i64) %is_first = and(%number, 1) == 0
@let u32 %high = %is_first ? %a : %c
@let u32 %low = %is_first ? %b : %d
@do uniform_of("%high", "%low", y)
@end
