// The quotient of two elements, of integers toward zero. Integers by 0 give 0, and the least one by
// -1 wraps to itself: division by 0 and overflow must not reach the machine.
@elementwise
@set T = elem(A)
@if is_float(A)
@let ${T} %C = %A / %B
@elif is_unsigned(A)
@let ${T} %safe = %B == 0 ? 1 : %B
@let ${T} %quotient = %A / %safe
@let ${T} %C = %B == 0 ? 0 : %quotient
@else
@let ${T} %safe = %B == 0 || %B == -1 ? 1 : %B
@let ${T} %quotient = %A / %safe
@let ${T} %C = %B == 0 ? 0 : %B == -1 ? 0 - %A : %quotient
@end
