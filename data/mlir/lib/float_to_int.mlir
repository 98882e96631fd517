// y, of the integer type `to`, = x of type `from` (f32 or f64), cut toward zero to 64 bits, of which the
// low ones are taken: what is beyond 64 bits becomes the nearest that they hold, NaN becomes 0.
@macro x, from, to, y
@if from == "f32" and to != "i64" and to != "u64"
// In 32 bits, so that it stays vector code: past 2^31 the low bits are those of the fraction, moved.
@let i1(f32) %inside = abs(${x}) < 2147483648
@let f32 %safe = %inside ? ${x} : 0
@let i32 %small = i32(f32 %safe)
%bits = arith.bitcast ${x} : f32 to i32
@let u32 %exponent = and(shr(%bits, 23), 255)
@let u32 %fraction = or(and(%bits, 8388607), 8388608)
@let i1(u32) %fits = %exponent >= 150 && %exponent < 182
@let u32 %by = %fits ? %exponent - 150 : 0
@let u32 %moved = shl(%fraction, %by)
@let u32 %low = %fits ? %moved : 0
@let i1(f32) %below = ${x} < 0
@let i1(f32) %beyond = ${x} >= 18446744073709551616.0
@let i32 %signed = %below ? 0 - %low : %low
@let i32 %large = %beyond ? -1 : %signed
@let i32 %whole = %inside ? %small : %large
@let ${to} ${y} = ${to}(i32 %whole)
@else
@let i1(${from}) %inside = ${x} >= -9223372036854775808.0 && ${x} < 9223372036854775808.0
@let i1(${from}) %above = ${x} >= 9223372036854775808.0 && ${x} < 18446744073709551616.0
@let i1(${from}) %beyond = ${x} >= 18446744073709551616.0
@let i1(${from}) %below = ${x} < 0
@let ${from} %lower = ${x} - 9223372036854775808.0
@let ${from} %either = %above ? %lower : 0
@let ${from} %safe = %inside ? ${x} : %either
@let i64 %cut = i64(${from} %safe)
@let i64 %high = %cut + least
@let i64 %outside = %beyond ? -1 : %below ? least : 0
@let i64 %unsigned = %above ? %high : %outside
@let i64 %whole = %inside ? %cut : %unsigned
@let ${to} ${y} = ${to}(i64 %whole)
@end
