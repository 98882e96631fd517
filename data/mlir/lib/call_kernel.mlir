// Calls a kernel in C with arguments of type index, numbers or names; the last `tail` of them stand
// behind two floats, the bounds of an activation, which there is none of; tail none: no floats.
@macro name, arguments, tail
@set n = len(arguments)
@for i in range(n)
@let index %arg${i} = ${arguments[i]}
@end
@if known(tail)
%bound = arith.constant 0.0 : f32
@set types = ["index" for i in range(n - tail)] + ["f32", "f32"] + ["index" for i in range(tail)]
@set values = ["%arg" + i for i in range(n - tail)] + ["%bound", "%bound"] + ["%arg" + i for i in range(n - tail, n)]
@else
@set types = ["index" for i in range(n)]
@set values = ["%arg" + i for i in range(n)]
@end
func.call ${kernel(name, types)}(${values}) : (${types}) -> ()
