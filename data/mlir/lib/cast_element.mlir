// y, of type `to`, = x of type `from`: names of elem(). Numbers of fewer than 8 bits are bytes.
@macro x, from, to, saturates, rounding, y
@set bytes = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2"]
@if from == to
@let ${from in bytes ? "i8" : from} ${y} = ${x}
@else
@set narrow = ["f16", "bf16", "f32", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"]
@set S = from in narrow ? "f32" : from in ["i4", "i2"] ? "i8" : from in ["u4", "u2"] ? "u8" : from
@if from in narrow
@do widen_element(x, from, "%wide")
@elif from in ["i4", "i2"]
// Whatever the other bits of the byte are.
@set spare = from == "i4" ? 4 : 6
@let i8 %wide = shr(shl(${x}, ${spare}), ${spare})
@elif from in ["u4", "u2"]
@let u8 %wide = and(${x}, ${from == "u4" ? 15 : 3})
@else
@let ${S} %wide = ${x}
@end
@set is_float = S == "f32" or S == "f64"
@if to == S
@let ${to} ${y} = %wide
@elif to == "i1"
@let i1(${S}) ${y} = %wide != 0
@elif to == "f64" or to == "f32"
@let ${to} ${y} = ${to}(${S} %wide)
@elif to in narrow
@if S in ["i32", "u32", "f64"]
@let f64 %double = f64(${S} %wide)
@do odd_f32("%double", "%single")
@elif S in ["i64", "u64"]
// The 53 bits that f64 holds, the last of them 1 when something was lost.
@let ${S} %rest = and(%wide, 2047)
@let ${S} %lost = %rest == 0 ? 0 : 2048
@let ${S} %odd = or(and(%wide, -2048), %lost)
@if S == "i64"
@let i1(u64) %is_small = %wide + 9007199254740992 < 18014398509481984
@else
@let i1(u64) %is_small = %wide < 9007199254740992
@end
@let ${S} %held = %is_small ? %wide : %odd
@let f64 %double = f64(${S} %held)
@do odd_f32("%double", "%single")
@else
@let f32 %single = f32(${S} %wide)
@end
@do narrow_element("%single", to, saturates, rounding, y)
@elif to in ["i4", "i2", "u4", "u2"]
@if is_float
@do float_to_int("%wide", S, "i8", "%byte")
@else
@let i8 %byte = i8(${S} %wide)
@end
@if to in ["i4", "i2"]
@let i8 ${y} = shr(shl(%byte, ${to == "i4" ? 4 : 6}), ${to == "i4" ? 4 : 6})
@else
@let u8 ${y} = and(%byte, ${to == "u4" ? 15 : 3})
@end
@elif is_float
@do float_to_int("%wide", S, to, y)
@else
@let ${to} ${y} = ${to}(${S} %wide)
@end
@end
