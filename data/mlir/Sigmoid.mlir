// 1 / (1 + e^-x). The operator's body computes the same with more care than f32 shows.
@elementwise
@whole
@if elem(X) == "f32"
@do sigmoid_f32("%X", "%Y")
@else
@let f64 %power = exp(-abs(%X))
@let f64 %above = %X < 0 ? %power : 1
@let f64 %Y = %above / (1 + %power)
@end
