// y = the hyperbolic tangent of x (f32), to two units in the last place.
@macro x, y
@let f32 %z = ${x} * ${x}
@let f32 %below = -2 * abs(${x})
@do exp_below_zero_f32("%below", "%e")
@let f32 %p0 = -5.70498872745e-3
@let f32 %p1 = muladd(%p0, %z, 2.06390887954e-2)
@let f32 %p2 = muladd(%p1, %z, -5.37397155531e-2)
@let f32 %p3 = muladd(%p2, %z, 1.33314422036e-1)
@let f32 %p4 = muladd(%p3, %z, -3.33332819422e-1)
@let f32 %near = muladd(%p4 * %z, ${x}, ${x})
@let f32 %far = (1 - %e) / (1 + %e)
@let f32 %either = abs(${x}) < 0.625 ? %near : %far
@let f32 ${y} = copysign(%either, ${x})
