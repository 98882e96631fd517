// The angle of a tangent.
@elementwise
@if elem(input) == "f32"
@do atan_f32("%input", "%output")
@else
@let f64 %output = atan(%input)
@end
