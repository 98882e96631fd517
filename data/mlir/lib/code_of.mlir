// to = the code of type T for a sum in i32 times a scale in f32: rounded to even, the zero point
// added, saturated.
@macro sum, scale, zero, T, to
@let f32 %zero_wide = f32(${T} ${zero})
@let f32 %whole = f32(i32 ${sum})
@let f32 %rounded = round(%whole * ${scale}) + %zero_wide
@let f32 %inside = min(max(%rounded, ${T == "u8" ? 0 : 0 - 128}), ${T == "u8" ? 255 : 127})
@let i32 %number = i32(f32 %inside)
${to} = arith.trunci %number : i32 to i8
