// y (f32) = x, of a narrow float type whose name is `from`: f16, bf16, f32 itself, or one that travels
// as a byte.
@macro x, from, y
@if from in ["f16", "bf16", "f32"]
@let f32 ${y} = f32(${from} ${x})
@elif from == "f8e8m0"
// An exponent alone: 2^(code - 127), where 255 is NaN; 2^-127 has no exponent of its own in f32.
@let u32 %code = u32(u8 ${x})
@let u32 %power = shl(%code, 23)
@let u32 %bits = %code == 255 ? 2143289344 : %code == 0 ? 4194304 : %power
${y} = arith.bitcast %bits : i32 to f32
@else
// Bits of the fraction, bias, largest code, code of infinity, and whether -0 is the one NaN.
@set f = from == "f8e4m3fn" ? [3, 7, 126, 0, false] : from == "f8e4m3fnuz" ? [3, 8, 127, 0, true] : \
         from == "f8e5m2" ? [2, 15, 123, 124, false] : from == "f8e5m2fnuz" ? [2, 16, 127, 0, true] : [1, 1, 7, 0, false]
@set sign = from == "f4e2m1" ? 8 : 128
// Put where f32 has exponent and fraction, the code is the number but for the bias, small ones too.
@let u32 %code = u32(u8 ${x})
@let u32 %magnitude = and(%code, ${sign - 1})
@let u32 %placed = shl(%magnitude, ${23 - f[0]})
%unscaled = arith.bitcast %placed : i32 to f32
%scale_bits = arith.constant ${(254 - f[1]) * 8388608} : i32
%scale = arith.bitcast %scale_bits : i32 to f32
@let f32 %size = %unscaled * %scale
@let i1(u32) %below = %code >= ${sign}
@let f32 %number = %below ? -%size : %size
@if f[3] != 0
@let i1(u32) %infinite = %magnitude == ${f[3]}
@let i1(u32) %wrong = %magnitude > ${f[3]}
@let f32 %infinity = %below ? -inf : inf
@let f32 %most = %infinite ? %infinity : %number
@let f32 ${y} = %wrong ? nan : %most
@elif f[4]
@let i1(u32) %wrong = %code == 128
@let f32 ${y} = %wrong ? nan : %number
@elif from == "f4e2m1"
@let f32 ${y} = %number
@else
@let i1(u32) %wrong = %magnitude > ${f[2]}
@let f32 ${y} = %wrong ? nan : %number
@end
@end
