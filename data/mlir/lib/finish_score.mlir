// y (f64) = what a score x becomes by itself: LOGISTIC, PROBIT, or nothing.
@macro x, how, y
@if how == "LOGISTIC"
@let f64 ${y} = 1 / (1 + exp(-${x}))
@elif how == "PROBIT"
// The inverse of the normal distribution, by Winitzki's formula for that of erf: infinite at 0 and 1,
// and NaN outside.
@let f64 %twice = 2 * ${x} - 1
@let f64 %rest = log((1 - %twice) * (1 + %twice))
@let f64 %v = 4.3307517882886484 + %rest / 2
@let f64 %sign = %twice < 0 ? -1 : 1
@let f64 %root = %sign * 1.4142135623730951 * sqrt(sqrt(%v * %v - %rest / 0.147) - %v)
@let f64 %end = %twice < 0 ? -inf : inf
@let f64 ${y} = abs(%rest) == inf ? %end : %root
@else
@let f64 ${y} = ${x}
@end
