// to = the filter of Resize at a distance, in units of its own grid.
@macro mode, a, distance, to
@let f64 %x = abs(${distance})
@if mode == "linear"
@let f64 ${to} = %x < 1 ? 1 - %x : 0
@else
@let f64 %near = ((${a} + 2) * %x - (${a} + 3)) * %x * %x + 1
@let f64 %far = ((${a} * %x - 5 * ${a}) * %x + 8 * ${a}) * %x - 4 * ${a}
@let f64 ${to} = %x <= 1 ? %near : %x < 2 ? %far : 0
@end
