// The hyperbolic tangent.
@elementwise
@if elem(input) == "f32"
@do tanh_f32("%input", "%output")
@else
@let f64 %output = tanh(%input)
@end
