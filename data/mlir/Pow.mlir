// A power, of the type of the base; the exponent may have another one. Squares and cubes, by far the
// most frequent powers, are products.
@elementwise
@set T = elem(X)
@set E = elem(Y)
@set given = const(Y)
@set e = known(given) and len(given) == 1 ? given[0] : none
@if is_float(X)
@set of_floats = T == "f32" and E == "f32"
@if e == 2 and (of_floats or T == "f64")
@let ${T} %Z = %X * %X
@elif e == 3 and of_floats
@let f64 %x = f64(f32 %X)
@let f64 %cube = %x * %x * %x
@let f32 %Z = f32(f64 %cube)
@elif of_floats
@do pow_f32("%X", "%Y", "%power")
@if known(e)
@let f32 %Z = %power
@else
@let f64 %x = f64(f32 %X)
@let f64 %cube = %x * %x * %x
@let f32 %third = f32(f64 %cube)
@let f32 %Z = %Y == 2 ? %X * %X : %Y == 3 ? %third : %power
@end
@else
@let f64 %x = f64(${T} %X)
@let f64 %y = f64(${E} %Y)
@let f64 %power = pow(%x, %y)
@let ${T} %rounded = ${T}(f64 %power)
@if T == "f64" and is_float(Y) and not known(e)
@let f64 %Z = %Y == 2 ? %X * %X : %rounded
@else
@let ${T} %Z = %rounded
@end
@end
@elif is_float(Y)
@let f64 %x = f64(${T} %X)
@let f64 %y = f64(${E} %Y)
@let f64 %power = pow(%x, %y)
// What 64 bits hold: the nearest for what they do not, 0 for NaN.
@let i1(f64) %inside = %power >= -9223372036854775808.0 && %power < 9223372036854775808.0
@let i1(f64) %above = %power >= 0
@let i1(f64) %below = %power < 0
@let f64 %safe = %inside ? %power : 0
@let i64 %cut = i64(f64 %safe)
@let i64 %outside = %above ? most : %below ? least : 0
@let i64 %whole = %inside ? %cut : %outside
@let ${T} %Z = ${T}(i64 %whole)
@else
@let i64 %x = i64(${T} %X)
@if E == "u64"
// Exponents past 2^63 become ones below it that give the same: powers of odd numbers repeat every
// 2^62, those of even ones are 0 by then.
@let i64 %past = or(and(%Y, 4611686018427387903), 4611686018427387904)
@let i64 %e = %Y < 0 ? %past : %Y
@else
@let i64 %e = i64(${E} %Y)
@end
@if known(e) and e >= 0 and e <= 16
@let i64 %p0 = 1
@for i in range(e)
@let i64 %p${i + 1} = %p${i} * %x
@end
@let ${T} %Z = ${T}(i64 %p${e})
@else
@do integer_power("%x", "%e", "%power")
@let ${T} %Z = ${T}(i64 %power)
@end
@end
