// y, of type T, = drawn (f64) * scale + shift, rounded to the type after each step.
@macro drawn, T, scale, shift, y
@set W = T == "f64" ? "f64" : "f32"
%scale = arith.constant ${literal(float(scale), W)} : ${W}
%shift = arith.constant ${literal(float(shift), W)} : ${W}
@if T == "f64"
@let f64 ${y} = ${drawn} * %scale + %shift
@elif T == "f32"
@let f32 ${y} = f32(f64 ${drawn}) * %scale + %shift
@else
@let ${T} %less_scale = ${T}(f32 %scale)
@let ${T} %less_shift = ${T}(f32 %shift)
@let f32 %single = f32(f64 ${drawn})
@let ${T} %less = ${T}(f32 %single)
@let f32 %product = f32(${T} %less) * f32(${T} %less_scale)
@let ${T} %less_product = ${T}(f32 %product)
@let f32 %sum = f32(${T} %less_product) + f32(${T} %less_shift)
@let ${T} ${y} = ${T}(f32 %sum)
@end
