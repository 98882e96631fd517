// y (f64) = a number of 53 bits, from 0 to below 1, of two words (i32).
@macro first, second, y
@let u32 %high = shr(${first}, 5)
@let u32 %low = shr(${second}, 6)
@let f64 ${y} = (f64(u32 %high) * 67108864 + f64(u32 %low)) / 9007199254740992.0
