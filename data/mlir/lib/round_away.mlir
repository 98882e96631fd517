// to = an f64 rounded to the nearest whole number, halves away from zero.
@macro from, to
@let f64 %whole = trunc(${from})
@let f64 %rest = abs(${from} - %whole)
@let f64 %unit = copysign(1, ${from})
@let f64 ${to} = %rest >= 0.5 ? %whole + %unit : %whole
