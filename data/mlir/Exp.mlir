// e to the power of an element.
@elementwise
@if elem(input) == "f32"
@do exp_f32("%input", "%output")
@else
@let f64 %output = exp(%input)
@end
