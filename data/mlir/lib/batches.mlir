// Opens loops over batch axes; @do end_batches(batch) closes them. Gives names of where the
// matrices of a batch begin: a_at, b_at, and c_at, with matrices of m x n.
@macro batch, a_steps, b_steps, m, n
@let index %zero = 0
@let index %one = 1
@let index %a_at = 0
@let index %b_at = 0
@let index %number = 0
@set a_at = "%a_at"
@set b_at = "%b_at"
@set number = "%number"
@for i in range(len(batch))
@let index %size${i} = ${batch[i]}
@end
@for i in range(len(batch))
scf.for %d${i} = %zero to %size${i} step %one {
@let index %a_at${i} = ${a_at} + %d${i} * ${a_steps[i]}
@let index %b_at${i} = ${b_at} + %d${i} * ${b_steps[i]}
@let index %number${i} = ${number} * %size${i} + %d${i}
@set a_at = "%a_at" + i
@set b_at = "%b_at" + i
@set number = "%number" + i
@end
@let index %c_at = ${number} * ${m} * ${n}
@set c_at = "%c_at"
@give a_at, b_at, c_at
