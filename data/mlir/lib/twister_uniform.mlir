// y (f64) = the next number from 0 to below 1 of the node's own generator, see lib/twister.mlir.
@macro state, word, y
@set S = "memref<?xi64>"
@let index %none = 0
@let index %step = 1
@let index %words = 624
@let index %base = ${word}
@let index %used_at = ${word + 624}
%used = memref.load ${state}[%used_at] : ${S}
@let i1(i64) %is_empty = %used >= 624
scf.if %is_empty {
  scf.for %i = %none to %words step %step {
@let index %next = %i + 1
@let index %around = rem(%next, 624)
@let index %far = %i + 397
@let index %far_around = rem(%far, 624)
@let index %at = %i + %base
@let index %next_at = %around + %base
@let index %far_at = %far_around + %base
    %own = memref.load ${state}[%at] : ${S}
    %neighbour = memref.load ${state}[%next_at] : ${S}
    %other = memref.load ${state}[%far_at] : ${S}
@let i64 %mixed = or(and(%own, 2147483648), and(%neighbour, 2147483647))
@let i64 %is_odd = and(%mixed, 1)
@let i64 %twist = %is_odd * 2567483615
@let i64 %half = shr(%mixed, 1)
@let i64 %new = xor(xor(%other, %half), %twist)
    memref.store %new, ${state}[%at] : ${S}
  }
}
@let i64 %first = %is_empty ? 0 : %used
@let i64 %then = %first + 2
memref.store %then, ${state}[%used_at] : ${S}
@for i in range(2)
@let index %at${i} = index(i64 %first) + ${word + i}
%raw${i} = memref.load ${state}[%at${i}] : ${S}
@let i64 %a${i} = xor(%raw${i}, shr(%raw${i}, 11))
@let i64 %b${i} = xor(%a${i}, and(shl(%a${i}, 7), 2636928640))
@let i64 %c${i} = xor(%b${i}, and(shl(%b${i}, 15), 4022730752))
@let i64 %d${i} = xor(%c${i}, shr(%c${i}, 18))
@let u32 %w${i} = u32(i64 %d${i})
@end
@do uniform_of("%w0", "%w1", y)
