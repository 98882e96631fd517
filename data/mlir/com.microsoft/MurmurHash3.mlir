// 32 bits of hash for the bytes of an element, in the variant for 32-bit machines.
@elementwise
@set E = elem(X)
@set wide = E in ["f64", "i64", "u64"]
@set bits = wide ? "i64" : "i32"
@if E in ["f32", "f64"]
  %bits = arith.bitcast %X : ${E} to ${bits}
@else
@let ${bits} %bits = %X
@end
@if wide
@let u32 %word0 = u32(u64 %bits)
@let u32 %word1 = u32(u64 shr(%bits, 32))
@else
@let u32 %word0 = %bits
@end
@let u32 %hash0 = ${attr("seed")}
@for k in range(wide ? 2 : 1)
@let u32 %a${k} = %word${k} * 3432918353
@let u32 %b${k} = or(shl(%a${k}, 15), shr(%a${k}, 17)) * 461845907
@let u32 %c${k} = xor(%hash${k}, %b${k})
@let u32 %hash${k + 1} = or(shl(%c${k}, 13), shr(%c${k}, 19)) * 5 + 3864292196
@end
@let u32 %d = xor(%hash${wide ? 2 : 1}, ${wide ? 8 : 4})
@let u32 %e = xor(%d, shr(%d, 16)) * 2246822507
@let u32 %f = xor(%e, shr(%e, 13)) * 3266489909
@let u32 %Y = xor(%f, shr(%f, 16))
