// y = 1 / (1 + e to the power -x) (f32), to a few units in the last place: half the operations of
// going by lib/exp_f32, which keeps subnormal numbers that are nothing beside 1. Results that would
// be subnormal are 0.
@macro x, y
@let f32 %within = ${x} > 87 ? 87 : ${x}
// The sum is rounded to an integer; its low bits are n + 127, the exponent of 2^n.
@let f32 %shifted = muladd(%within, -1.44269504, 12583039)
@let f32 %n = %shifted - 12583039
@let f32 %r = muladd(%n, -2.12194440e-4, muladd(%n, 0.693359375, %within))
// e^-r for |r| <= ln(2) / 2, with an error of at most 1e-8.
@let f32 %p0 = 1.38436e-3
@let f32 %p1 = muladd(%p0, %r, -8.37424e-3)
@let f32 %p2 = muladd(%p1, %r, 4.166801e-2)
@let f32 %p3 = muladd(%p2, %r, -0.1666643)
@let f32 %p4 = muladd(%p3, %r, 0.49999994)
@let f32 %p5 = muladd(%p4, %r, -1)
@let f32 %p = muladd(%p5, %r, 1)
%bits = arith.bitcast %shifted : f32 to i32
@let u32 %power_bits = shl(%bits, 23)
%power = arith.bitcast %power_bits : i32 to f32
@let f32 %below = muladd(%p, %power, 1)
@let f32 %one = 1
// Where the target estimates reciprocals of vectors, one with a step of Newton's is twice as fast as
// the division.
%share = arith.divf %one, %below fastmath<ninf, arcp, contract> : f32
@let f32 ${y} = ${x} < -87 ? 0 : %share
