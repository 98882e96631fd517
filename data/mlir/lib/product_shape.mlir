// The sizes of a product of A (.., m, k) and B (.., k, n), as MatMul has it: an A of rank 1 is a row,
// a B of rank 1 a column. Gives m, n, k, `batch` (sizes of the axes before), `sizes` of the result,
// and the steps from batch to batch by those axes, a_steps and b_steps, 0 where an operand is
// repeated. One B for all of A: its batches are more rows, and batch is empty.
@macro A, B, Y
@do numbers(A)
@set as = numbers
@do numbers(B)
@set bs = numbers
@set ra = rank(A)
@set rb = rank(B)
@set m = ra > 1 ? as[ra - 2] : 1
@set k = as[ra - 1]
@set n = rb > 1 ? bs[rb - 1] : 1
@set r = max(max(ra, rb) - 2, 0)
@set inner = rb > 1 ? rb - 2 : 0
@if not same(A, ra - 1, B, inner)
@let i1(index) %fits = ${k} == ${bs[inner]}
cf.assert %fits, "${place()}: the columns of the left operand are not as many as the rows of the right one"
@end
@set ab = [i < r - max(ra - 2, 0) ? 1 : as[i - (r - max(ra - 2, 0))] for i in range(r)]
@set bb = [i < r - max(rb - 2, 0) ? 1 : bs[i - (r - max(rb - 2, 0))] for i in range(r)]
@set batch = []
@for i in range(r)
@if known(dim(Y, i))
@if not (ab[i] >= 0 and bb[i] >= 0)
@set y = dim(Y, i)
@let i1(index) %a_fits${i} = ${ab[i]} == 1 || ${ab[i]} == ${y}
@let i1(index) %b_fits${i} = ${bb[i]} == 1 || ${bb[i]} == ${y}
@let i1(index) %one_fits${i} = ${ab[i]} == ${y} || ${bb[i]} == ${y}
@let i1 %fit${i} = %a_fits${i} && %b_fits${i} && %one_fits${i}
cf.assert %fit${i}, "${place()}: batch axes of its operands do not broadcast"
@end
@set batch = batch + [dim(Y, i)]
@else
@let index %batch${i} = ${ab[i]} == 1 ? ${bb[i]} : ${ab[i]}
@let i1(index) %agrees${i} = ${bb[i]} == 1 || ${bb[i]} == %batch${i}
cf.assert %agrees${i}, "${place()}: batch axes of its operands do not broadcast"
@set batch = batch + ["%batch" + i]
@end
@end
@set sizes = batch + (ra > 1 ? [m] : []) + (rb > 1 ? [n] : [])
@set ones = len([i for i in range(r) if bb[i] == 1]) == r
@set a_steps = []
@set b_steps = []
@if ones and ra > 1
@set rows = m
@for i in range(r)
@set more = fresh()
@if rows >= 0 and batch[i] >= 0
@set rows = rows * batch[i]
@else
@let index ${more} = ${rows} * ${batch[i]}
@set rows = more
@end
@end
@set m = rows
@set batch = []
@else
@let index %a_step${r} = ${m} * ${k}
@let index %b_step${r} = ${k} * ${n}
@for j in range(r)
@set i = r - 1 - j
@let index %a_step${i} = %a_step${i + 1} * ${ab[i]}
@let index %b_step${i} = %b_step${i + 1} * ${bb[i]}
@let index %a_walk${i} = ${ab[i]} == 1 ? 0 : %a_step${i + 1}
@let index %b_walk${i} = ${bb[i]} == 1 ? 0 : %b_step${i + 1}
@end
@set a_steps = ["%a_walk" + i for i in range(r)]
@set b_steps = ["%b_walk" + i for i in range(r)]
@end
@give m, n, k, batch, sizes, a_steps, b_steps
