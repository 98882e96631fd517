// numbers (tensor<?xf64>) = the next `count` (an index) numbers of a node with a seed, normal or uniform ones:
// MT19937 goes on from the node's words of the random state. Those are 624 of the generator, how many of
// them are used up, the normal number that is left over and whether there is one.
@macro normal, count, numbers
@set word = random_word()
@set state = random_state()
@set S = "memref<?xi64>"
@set N = tensor([none], "f64")
@let index %none = 0
@let index %step = 1
@let index %left_at = ${word + 625}
@let index %is_left_at = ${word + 626}
@let i64 %no = 0
@let i64 %yes = 1
%empty = tensor.empty(${count}) : ${N}
${numbers} = scf.for %i = %none to ${count} step %step iter_args(%so_far = %empty) -> (${N}) {
@if normal
  %is_left = memref.load ${state}[%is_left_at] : ${S}
@let i1(i64) %has_left = %is_left != 0
  %number = scf.if %has_left -> f64 {
    memref.store %no, ${state}[%is_left_at] : ${S}
    %left_bits = memref.load ${state}[%left_at] : ${S}
    %left = arith.bitcast %left_bits : i64 to f64
    scf.yield %left : f64
  } else {
@let f64 %nowhere = 2
    %point:3 = scf.while (%x_in = %nowhere, %y_in = %nowhere, %r_in = %nowhere) : (f64, f64, f64) -> (f64, f64, f64) {
@let i1(f64) %again = %r_in >= 1 || %r_in == 0
      scf.condition(%again) %x_in, %y_in, %r_in : f64, f64, f64
    } do {
    ^bb0(%x_old: f64, %y_old: f64, %r_old: f64):
@do twister_uniform(state, word, "%u")
@do twister_uniform(state, word, "%v")
@let f64 %x_new = 2 * %u - 1
@let f64 %y_new = 2 * %v - 1
@let f64 %r_new = %x_new * %x_new + %y_new * %y_new
      scf.yield %x_new, %y_new, %r_new : f64, f64, f64
    }
@let f64 %far = sqrt(-2 * log(%point#2) / %point#2)
@let f64 %for_later = %far * %point#0
@let f64 %now = %far * %point#1
    %later_bits = arith.bitcast %for_later : f64 to i64
    memref.store %later_bits, ${state}[%left_at] : ${S}
    memref.store %yes, ${state}[%is_left_at] : ${S}
    scf.yield %now : f64
  }
@else
@do twister_uniform(state, word, "%number")
@end
  %more = tensor.insert %number into %so_far[%i] : ${N}
  scf.yield %more : ${N}
}
