// The natural logarithm.
@elementwise
@if elem(input) == "f32"
@do log_f32("%input", "%output")
@else
@let f64 %output = log(%input)
@end
