// y = the natural logarithm of x (f32), to two units in the last place: e * ln(2) + log(1 + f), with
// 1 + f between the roots of 1/2 and 2.
@macro x, y
@let i1(f32) %subnormal = ${x} < 1.1754943508222875e-38
@let f32 %up = %subnormal ? 8388608 : 1
@let f32 %less = %subnormal ? 23 : 0
@let f32 %scaled = ${x} * %up
%bits = arith.bitcast %scaled : f32 to i32
@let u32 %exponent = xor(shr(%bits - 1060439283, 23), 256) - 256
@let u32 %reduced_bits = %bits - shl(%exponent, 23)
%reduced = arith.bitcast %reduced_bits : i32 to f32
@let f32 %f = %reduced - 1
@let f32 %e = f32(i32 %exponent) - %less
@let f32 %z = %f * %f
@let f32 %p0 = 7.0376836292e-2
@let f32 %p1 = muladd(%p0, %f, -1.1514610310e-1)
@let f32 %p2 = muladd(%p1, %f, 1.1676998740e-1)
@let f32 %p3 = muladd(%p2, %f, -1.2420140846e-1)
@let f32 %p4 = muladd(%p3, %f, 1.4249322787e-1)
@let f32 %p5 = muladd(%p4, %f, -1.6668057665e-1)
@let f32 %p6 = muladd(%p5, %f, 2.0000714765e-1)
@let f32 %p7 = muladd(%p6, %f, -2.4999993993e-1)
@let f32 %p8 = muladd(%p7, %f, 3.3333331174e-1)
@let f32 %y0 = muladd(%e, -2.12194440e-4, %f * %z * %p8)
@let f32 %y1 = muladd(%z, -0.5, %y0)
@let f32 %y2 = muladd(%e, 0.693359375, %f + %y1)
@let f32 %edge = ${x} == 0 ? -inf : ${x} > 0 ? ${x} : nan
@let f32 ${y} = ${x} > 0 && ${x} <= 3.4028234663852886e38 ? %y2 : %edge
