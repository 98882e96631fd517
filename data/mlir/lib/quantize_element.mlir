// y, of type `to`, = x / s + z, rounded to even and cut to what the type holds: x is of type `from`, s of
// type `scale`, z of type `to` or none; the quotient is rounded to the type `precision`.
@macro x, from, s, scale, z, to, precision, saturates, y
@if precision == "i32"
@do cast_element(x, from, "f64", true, "up", "%dividend")
@do cast_element(s, scale, "f64", true, "up", "%divisor")
@let f64 %quotient = %dividend / %divisor
@set Q = "f64"
@else
@set Q = "f32"
@do cast_element(x, from, "f32", true, "up", "%dividend")
@do cast_element(s, scale, "f32", true, "up", "%divisor")
@if precision == "f32"
@let f32 %quotient = %dividend / %divisor
@else
@let ${precision} %less_x = ${precision}(f32 %dividend)
@let ${precision} %less_s = ${precision}(f32 %divisor)
@let f32 %wide = f32(${precision} %less_x) / f32(${precision} %less_s)
@let ${precision} %less = ${precision}(f32 %wide)
@let f32 %quotient = f32(${precision} %less)
@end
@end
@if to in ["u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2"]
@set bits = to in ["u8", "i8"] ? 8 : to in ["u4", "i4"] ? 4 : to in ["u2", "i2"] ? 2 : 16
@set span = bits == 8 ? 256 : bits == 4 ? 16 : bits == 2 ? 4 : 65536
@set lowest = to in ["u8", "u16", "u4", "u2"] ? 0 : -span / 2
// Limits are set before rounding, where NaN becomes the lowest. Within them, adding 1.5 * 2^23 (or
// 2^52) rounds half to even and leaves the integer in the low bits.
@if known(z)
@do cast_element(z, to, "i32", true, "up", "%zero")
@else
@let i32 %zero = 0
@end
@let ${Q} %zero_point = ${Q}(i32 %zero)
@let ${Q} %low = ${lowest} - %zero_point
@let ${Q} %high = ${lowest + span - 1} - %zero_point
@let ${Q} %above = %quotient > %low ? %quotient : %low
@let ${Q} %within = %above < %high ? %above : %high
@if Q == "f32"
@let f32 %shifted = %within + 12582912
%shifted_bits = arith.bitcast %shifted : f32 to i32
@let i32 %whole = %shifted_bits - 1262485504 + %zero
@else
@let f64 %shifted = %within + 6755399441055744.0
%shifted_bits = arith.bitcast %shifted : f64 to i64
@let i32 %whole = i32(i64 %shifted_bits) + %zero
@end
@let ${to in ["u16", "i16"] ? to : "i8"} ${y} = ${to in ["u16", "i16"] ? to : "i8"}(i32 %whole)
@else
@if known(z)
@do cast_element(z, to, "f64", true, "up", "%zero")
@let f64 %sum = f64(${Q} %quotient) + %zero
@let f32 %moved = f32(f64 %sum)
@else
@let f32 %moved = f32(${Q} %quotient)
@end
@if to in ["f8e4m3fnuz", "f8e5m2fnuz"]
// Infinity becomes NaN, whatever happens to large numbers.
@let i1(f32) %finite = abs(%moved) < inf
@let f32 %given = %finite ? %moved : nan
@elif to == "f4e2m1"
// NaN becomes the largest number.
@let i1(f32) %known = %moved == %moved
@let f32 %given = %known ? %moved : inf
@else
@let f32 %given = %moved
@end
@do narrow_element("%given", to, saturates, "nearest", y)
@end
