// w (a list of four names, of i32) = block number `counter` (i64) of the random numbers of this node:
// Philox 4x32-10. key (i64): the seed; none: 0, that of a run that names none.
@macro counter, key, w
@set number = stream()
@let u32 %c0_0 = u32(u64 ${counter})
@let u64 %high = shr(${counter}, 32)
@let u32 %c1_0 = u32(u64 %high)
@let u32 %c2_0 = ${number}
@let u32 %c3_0 = 0
@if known(key)
@let u32 %k0 = u32(u64 ${key})
@let u64 %key_high = shr(${key}, 32)
@let u32 %k1 = u32(u64 %key_high)
@else
@let u32 %k0 = 0
@let u32 %k1 = 0
@end
@for i in range(10)
@let u64 %p${i} = u64(u32 %c0_${i}) * 3528531795
@let u64 %q${i} = u64(u32 %c2_${i}) * 3449720151
@let u64 %p_high${i} = shr(%p${i}, 32)
@let u64 %q_high${i} = shr(%q${i}, 32)
@let u32 %first${i} = %k0 + ${(i * 2654435769) % 4294967296}
@let u32 %second${i} = %k1 + ${(i * 3144134277) % 4294967296}
@let u32 ${i < 9 ? "%c0_" + (i + 1) : w[0]} = xor(xor(u32(u64 %q_high${i}), %c1_${i}), %first${i})
@let u32 ${i < 9 ? "%c1_" + (i + 1) : w[1]} = u32(u64 %q${i})
@let u32 ${i < 9 ? "%c2_" + (i + 1) : w[2]} = xor(xor(u32(u64 %p_high${i}), %c3_${i}), %second${i})
@let u32 ${i < 9 ? "%c3_" + (i + 1) : w[3]} = u32(u64 %p${i})
@end
