// y (f32) = x (f64), where the last bit is made 1 when something was lost: then rounding once more, to
// a narrower type, comes out as rounding once would have.
@macro x, y
@let f32 %near = f32(f64 ${x})
@let f64 %back = f64(f32 %near)
%bits = arith.bitcast %near : f32 to i32
@let i1(f64) %exact = %back == ${x}
@let i1(f64) %larger = abs(%back) > abs(${x})
@let u32 %toward = %larger ? %bits - 1 : %bits
@let u32 %odd = or(%toward, 1)
%is_nan = arith.cmpf uno, ${x}, ${x} : f64
@let i1 %keep = or(%exact, %is_nan)
@let u32 %chosen = %keep ? %bits : %odd
${y} = arith.bitcast %chosen : i32 to f32
