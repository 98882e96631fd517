// y = x (f32), rounded to the narrow float type whose name is `to`: to the nearest, ties to even. What
// is beyond the largest number becomes that (saturates), or else infinity or NaN. Rounding is up, down
// or nearest, of f8e8m0 alone.
@macro x, to, saturates, rounding, y
@if to in ["f16", "bf16", "f32"]
@let ${to} ${y} = ${to}(f32 ${x})
@else
%bits = arith.bitcast ${x} : f32 to i32
@let u32 %magnitude = and(%bits, 2147483647)
@if to == "f8e8m0"
// The sign is dropped, and what is below the least power, zero included, becomes that. Below 2^-126
// floats lack the implicit bit: 2^-127 is a fraction of 0x400000.
@let u32 %exponent = shr(%magnitude, 23)
@let u32 %fraction = and(%magnitude, 8388607)
@if rounding == "up"
@let u32 %step = %exponent == 0 ? 4194304 : 0
@let u32 %up = %fraction > %step ? 1 : 0
@elif rounding == "nearest"
@let u32 %step = %exponent == 0 ? 6291456 : 4194304
@let u32 %up = %fraction >= %step ? 1 : 0
@else
@let u32 %up = 0
@end
@let u32 %sum = %exponent + %up
@let u32 %code = %exponent == 255 ? 255 : %sum == 255 ? ${saturates ? 254 : 255} : %sum
@else
// Bits of the fraction, bias, largest code, the code of what is beyond it, of NaN, and whether -0 is
// the one NaN.
@set f = to == "f8e4m3fn" ? [3, 7, 126, 127, 127, false] : to == "f8e4m3fnuz" ? [3, 8, 127, 128, 128, true] : \
         to == "f8e5m2" ? [2, 15, 123, 124, 126, false] : to == "f8e5m2fnuz" ? [2, 16, 127, 128, 128, true] : [1, 1, 7, 7, 0, false]
@set sign = to == "f4e2m1" ? 8 : 128
@let u32 %odd = and(shr(%magnitude, ${23 - f[0]}), 1)
@let u32 %normal = shr(%magnitude + ${(f[0] == 3 ? 524288 : f[0] == 2 ? 1048576 : 2097152) - 1} + %odd, ${23 - f[0]}) - ${(127 - f[1]) * (f[0] == 3 ? 8 : f[0] == 2 ? 4 : 2)}
// Below the least normal number the steps are those of a sum with a power of two.
@set power = (151 - f[1] - f[0]) * 8388608
%power_bits = arith.constant ${power} : i32
%power = arith.bitcast %power_bits : i32 to f32
%size = arith.bitcast %magnitude : i32 to f32
@let f32 %stepped = %size + %power
%stepped_bits = arith.bitcast %stepped : f32 to i32
@let u32 %small = %stepped_bits - ${power}
@let u32 %near = %magnitude < ${(128 - f[1]) * 8388608} ? %small : %normal
@let u32 %within = %near > ${f[2]} ? ${saturates ? f[2] : f[3]} : %near
@let u32 %sign = %bits >= 2147483648 ? ${sign} : 0
@if f[5]
@let u32 %signed = %within == 0 || %within == 128 ? %within : or(%within, %sign)
@let u32 %code = %magnitude > 2139095040 ? 128 : %signed
@elif to == "f4e2m1"
// There is no NaN: it becomes a zero of the other sign.
@let u32 %signed = or(%within, %sign)
@let u32 %code = %magnitude > 2139095040 ? 8 - %sign : %signed
@else
@let u32 %finite = %magnitude > 2139095040 ? ${f[4]} : %within
@let u32 %code = or(%finite, %sign)
@end
@end
@let u8 ${y} = u8(u32 %code)
@end
