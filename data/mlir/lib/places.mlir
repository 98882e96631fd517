// Indices `to`0 to `to`(q - 1): the sizes of those axes that are not gone, which are truths.
@macro gone, sizes, q, to
@set r = len(sizes)
@let index %place0 = 0
@for i in range(r)
@let index %place${i + 1} = ${gone[i]} ? %place${i} : %place${i} + 1
@end
@for j in range(q)
@let index %part${j}_0 = 1
@for i in range(r)
@let i1(index) %here${j}_${i} = !${gone[i]} && %place${i} == ${j}
@let index %part${j}_${i + 1} = %here${j}_${i} ? ${sizes[i]} : %part${j}_${i}
@end
@let index ${to}${j} = %part${j}_${r}
@end
