// y = the error function of x (f32): x times a polynomial of x * x below 1, and beyond that
// 1 - exp(-q(x)), q being the logarithm of 1 - erf.
@macro x, y
@let f32 %a = abs(${x})
@let f32 %t = %a > 4.1 ? 4.1 : %a
@let f32 %q0 = 2.169764593418222e-05
@let f32 %q1 = muladd(%q0, %t, -0.0004414730065036565)
@let f32 %q2 = muladd(%q1, %t, 0.004205286502838135)
@let f32 %q3 = muladd(%q2, %t, -0.025210343301296234)
@let f32 %q4 = muladd(%q3, %t, 0.10842210799455643)
@let f32 %q5 = muladd(%q4, %t, 0.633216381072998)
@let f32 %q6 = muladd(%q5, %t, 1.1295802593231201)
@let f32 %q7 = muladd(%q6, %t, -0.0001884680677903816)
@let f32 %below = -%q7
@do exp_below_zero_f32("%below", "%e")
@let f32 %z = ${x} * ${x}
@let f32 %p0 = 7.853857823647559e-05
@let f32 %p1 = muladd(%p0, %z, -0.0008010192541405559)
@let f32 %p2 = muladd(%p1, %z, 0.005188327748328447)
@let f32 %p3 = muladd(%p2, %z, -0.026853810995817184)
@let f32 %p4 = muladd(%p3, %z, 0.1128358542919159)
@let f32 %p5 = muladd(%p4, %z, -0.3761262595653534)
@let f32 %p6 = muladd(%p5, %z, 0.12837916710)
@let f32 %near = muladd(${x}, %p6, ${x})
@let f32 %far = copysign(1 - %e, ${x})
@let f32 ${y} = %a < 1 ? %near : %far
