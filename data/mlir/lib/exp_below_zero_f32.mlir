// y = e to the power x (f32) for x <= 0: 2^64 times it, which is never subnormal, and then as much less.
@macro x, y
@let f32 %within = ${x} < -104 ? -104 : ${x}
@let f32 %shifted = muladd(%within, 1.44269504, 12583103)
@let f32 %n = %shifted - 12583103
@let f32 %r = muladd(%n, 2.12194440e-4, muladd(%n, -0.693359375, %within))
@let f32 %p0 = 1.9875691500e-4
@let f32 %p1 = muladd(%p0, %r, 1.3981999507e-3)
@let f32 %p2 = muladd(%p1, %r, 8.3334519073e-3)
@let f32 %p3 = muladd(%p2, %r, 4.1665795894e-2)
@let f32 %p4 = muladd(%p3, %r, 1.6666665459e-1)
@let f32 %p5 = muladd(%p4, %r, 5.0000001201e-1)
@let f32 %p = muladd(%p5, %r * %r, %r) + 1
%bits = arith.bitcast %shifted : f32 to i32
@let u32 %power_bits = shl(%bits, 23)
%power = arith.bitcast %power_bits : i32 to f32
@let f32 ${y} = %p * %power * 5.421010862427522e-20
