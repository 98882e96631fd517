// y = x to the power e (f32), as powf has it for zeros, infinities, NaN and negative numbers: 2 to the
// power e * log2(|x|), in f64.
@macro given, exponent, y
@let f64 %x = f64(f32 ${given})
@let f64 %e = f64(f32 ${exponent})
@let f64 %a = abs(%x)
// log2: the exponent and that of 1 + f between the roots of 1/2 and 2, an odd function of f / (2 + f).
// Every f32 that is not 0 is a normal f64.
%bits = arith.bitcast %a : f64 to i64
@let u64 %biased = shr(%bits - 4604544271217802189 + 4611686018427387904, 52)
@let u64 %m_bits = %bits - shl(%biased - 1024, 52)
%m = arith.bitcast %m_bits : i64 to f64
@let u64 %placed = or(%biased, 4841369599423283200)
%large = arith.bitcast %placed : i64 to f64
@let f64 %scale = %large - 4503599627371520.0
@let f64 %s = (%m - 1) / (%m + 1)
@let f64 %z = %s * %s
@let f64 %p0 = -1.246387524713488
@let f64 %p1 = muladd(%p0, %z, 0.39307084711506635)
@let f64 %p2 = muladd(%p1, %z, 0.31625283753454886)
@let f64 %p3 = muladd(%p2, %z, 0.41226510396711896)
@let f64 %p4 = muladd(%p3, %z, 0.5770775559365603)
@let f64 %p5 = muladd(%p4, %z, 0.9617966950943393)
@let f64 %p6 = muladd(%p5, %z, 2.8853900817774374)
@let f64 %log = %scale + %s * %p6
@let f64 %log2 = %a == 0 ? -inf : %a <= 1.7976931348623157e308 ? %log : %a
// 2^t: what is far beyond f32 becomes infinity or 0 when it is rounded to one.
@let f64 %product = %e * %log2
@let f64 %most = %product > 300 ? 300 : %product
@let f64 %within = %most < -300 ? -300 : %most
@let f64 %shifted = %within + 6755399441055744.0
@let f64 %f = %within - (%shifted - 6755399441055744.0)
@let f64 %q0 = 1.531648623197442e-05
@let f64 %q1 = muladd(%q0, %f, 0.00015469758152624835)
@let f64 %q2 = muladd(%q1, %f, 0.0013333422540737592)
@let f64 %q3 = muladd(%q2, %f, 0.009618025521390596)
@let f64 %q4 = muladd(%q3, %f, 0.05550410976237828)
@let f64 %q5 = muladd(%q4, %f, 0.24022651214204363)
@let f64 %q6 = muladd(%q5, %f, 0.6931471805349859)
@let f64 %q7 = muladd(%q6, %f, 0.9999999999594853)
%shifted_bits = arith.bitcast %shifted : f64 to i64
@let u64 %power_bits = shl(%shifted_bits, 52) + 4607182418800017408
%power = arith.bitcast %power_bits : i64 to f64
@let f64 %magnitude = %q7 * %power
// Floats from 2^24 on are even integers; the sum rounds the smaller ones.
@let f64 %small = abs(%e) < 16777216 ? %e : 0
@let f64 %half = %small * 0.5
@let f64 %rest = %small - ((%small + 6755399441055744.0) - 6755399441055744.0)
@let f64 %rest_of_half = %half - ((%half + 6755399441055744.0) - 6755399441055744.0)
@let f64 %odd = copysign(%magnitude, %x)
@let f64 %none = %a <= 1.7976931348623157e308 ? nan : %magnitude
@let f64 %of_integer = %rest_of_half == 0 ? %magnitude : %odd
@let f64 %of_real = %x < 0 ? %none : %magnitude
@let f64 %signed = %rest == 0 ? %of_integer : %of_real
// 1 by anything is 1, by infinity -1 too, and by 0 anything is.
@let f64 %base = abs(%e) > 1.7976931348623157e308 ? %a : %x
@let f64 %one = %base == 1 ? 1 : %signed
@let f64 %all = %e == 0 ? 1 : %one
@let f32 ${y} = f32(f64 %all)
