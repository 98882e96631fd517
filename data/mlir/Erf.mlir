// The error function.
@elementwise
@if elem(input) == "f32"
@do erf_f32("%input", "%output")
@else
@let f64 %output = erf(%input)
@end
