// y = e to the power x (f32), to two units in the last place, without branches and tables so that it
// becomes vector code: 2^n * e^r with |r| <= ln(2) / 2. 2^n is two factors, so that subnormal results
// are rounded once.
@macro x, y
@let f32 %most = ${x} > 89 ? 89 : ${x}
@let f32 %within = %most < -104 ? -104 : %most
// Adding 1.5 * 2^23 rounds to an integer, which the low bits of the sum then are.
@let f32 %shifted = muladd(%within, 1.44269504, 12582912)
@let f32 %n = %shifted - 12582912
@let f32 %r = muladd(%n, 2.12194440e-4, muladd(%n, -0.693359375, %within))
@let f32 %p0 = 1.9875691500e-4
@let f32 %p1 = muladd(%p0, %r, 1.3981999507e-3)
@let f32 %p2 = muladd(%p1, %r, 8.3334519073e-3)
@let f32 %p3 = muladd(%p2, %r, 4.1665795894e-2)
@let f32 %p4 = muladd(%p3, %r, 1.6666665459e-1)
@let f32 %p5 = muladd(%p4, %r, 5.0000001201e-1)
// What the sum 1 + r lost.
@let f32 %near = 1 + %r
@let f32 %rest = (1 - %near) + %r
@let f32 %p = %near + muladd(%p5, %r * %r, %rest)
%bits = arith.bitcast %shifted : f32 to i32
@let u32 %above = %bits - 1262485248
@let u32 %half = shr(%above, 1)
@let u32 %first_bits = shl(%half - 1, 23)
@let u32 %second_bits = shl(%above - %half - 1, 23)
%first = arith.bitcast %first_bits : i32 to f32
%second = arith.bitcast %second_bits : i32 to f32
@let f32 ${y} = %p * %first * %second
