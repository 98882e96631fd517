// to = a float of type T as an element of type E: integers are rounded to the nearest, and held
// within their limits; NaN is 0.
@macro from, T, E, to
@if E in ["f16", "bf16", "f32", "f64"]
@let ${E} ${to} = ${E}(${T} ${from})
@elif E == "i1"
@let i1(${T}) ${to} = ${from} != 0
@else
@set bits = E in ["i8", "u8"] ? 8 : E in ["i16", "u16"] ? 16 : E in ["i32", "u32"] ? 32 : 64
@set is_unsigned = E in ["u8", "u16", "u32", "u64"]
@set top = bits == 8 ? 256.0 : bits == 16 ? 65536.0 : bits == 32 ? 4294967296.0 : 18446744073709551616.0
@let ${T} %v = round(${from})
@let i1(${T}) %is_number = %v == %v
@let i1(${T}) %is_low = %v <= ${is_unsigned ? 0.0 : -top / 2}
@let i1(${T}) %is_high = %v >= ${is_unsigned ? top : top / 2}
@let ${E} %code = ${E}(${T} %v)
@let ${E} %least = least
@let ${E} %most = most
@let ${E} %zero = 0
  %a = arith.select %is_high, %most, %code : ${bare(E)}
  %b = arith.select %is_low, %least, %a : ${bare(E)}
  ${to} = arith.select %is_number, %b, %zero : ${bare(E)}
@end
