// y = the angle whose tangent is x (f32): a polynomial up to 1; beyond it, pi / 2 less that of 1 / x.
@macro x, y
@let f32 %a = abs(${x})
@let f32 %t = %a > 1 ? 1 / %a : %a
@let f32 %z = %t * %t
@let f32 %p0 = 0.0029202080331742764
@let f32 %p1 = muladd(%p0, %z, -0.01636599935591221)
@let f32 %p2 = muladd(%p1, %z, 0.04320874065160751)
@let f32 %p3 = muladd(%p2, %z, -0.07551952451467514)
@let f32 %p4 = muladd(%p3, %z, 0.10665883123874664)
@let f32 %p5 = muladd(%p4, %z, -0.14211024343967438)
@let f32 %p6 = muladd(%p5, %z, 0.19993768632411957)
@let f32 %p7 = muladd(%p6, %z, -0.33333152532577515)
@let f32 %near = muladd(%p7 * %z, %t, %t)
@let f32 %far = 1.57079637 - (%near + 4.37113883e-8)
@let f32 %either = %a > 1 ? %far : %near
@let f32 ${y} = copysign(%either, ${x})
