// y, of type `to`, = (x - z) * s: x and z are of type `from`, s of type `scale`; z may be none.
@macro x, from, s, scale, z, to, y
@set plain = from in ["u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2"]
@set W = plain or not known(z) ? "f32" : "f64"
@do cast_element(x, from, W, true, "up", "%code")
@if known(z)
@do cast_element(z, from, W, true, "up", "%zero")
@let ${W} %exact = %code - %zero
@let f32 %difference = f32(${W} %exact)
@else
@let f32 %difference = %code
@end
@do widen_element(s, scale, "%factor")
@let f32 %product = %difference * %factor
@let ${to} ${y} = ${to}(f32 %product)
