// to = an integer that is as large among those of other elements as the element, of type E, is among
// them: i64 for types of 64 bits, else i32. Both zeros are one, and what is not a number is `nan`,
// "least" or "most".
@macro element, E, nan, to
@set K = E in ["f64", "i64", "u64"] ? "i64" : "i32"
@if E in ["f64", "f32", "f16", "bf16"]
@set F = E == "f64" ? "f64" : "f32"
@let ${F} %number = ${F}(${E} ${element}) + 0
%number_bits = arith.bitcast %number : ${F} to ${K}
@let ${K} %turned = %number_bits < 0 ? xor(%number_bits, most) : %number_bits
@let i1(${F}) %is_nan = %number != %number
@let ${K} ${to} = %is_nan ? ${nan} : %turned
@elif E == "u32" or E == "u64"
@let ${K} ${to} = xor(${K}(${E} ${element}), least)
@else
@let ${K} ${to} = ${K}(${E} ${element})
@end
