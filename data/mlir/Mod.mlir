// The remainder: with fmod of the sign of the dividend, else of the divisor. Integers by 0 give 0.
@elementwise
@set T = elem(A)
@set floored = attr("fmod") == 0
@if is_float(A)
@let ${T} %r = rem(%A, %B)
@if floored
@let i1(${T}) %r_below = %r < 0
@let i1(${T}) %b_below = %B < 0
@let i1 %differ = xor(%r_below, %b_below)
@let ${T} %signed_zero = copysign(%r, %B)
@let ${T} %moved = %differ ? %r + %B : %r
@let ${T} %C = %r == 0 ? %signed_zero : %moved
@else
@let ${T} %C = %r
@end
@elif is_unsigned(A)
@let ${T} %safe = %B == 0 ? 1 : %B
@let ${T} %C = rem(%A, %safe)
@else
// The remainder by 1 is 0, as that by 0 and by -1 is to be.
@let ${T} %safe = %B == 0 || %B == -1 ? 1 : %B
@let ${T} %r = rem(%A, %safe)
@if floored
@let ${T} %unlike = xor(%r, %B)
@let ${T} %C = %r != 0 && %unlike < 0 ? %r + %B : %r
@else
@let ${T} %C = %r
@end
@end
