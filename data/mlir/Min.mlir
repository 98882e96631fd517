// The smallest of any number of elements; NaN wins over numbers.
@elementwise
@set T = elem(min)
@let ${T} %so_far0 = ${data_0[0]}
@for i in range(1, len(data_0))
@let ${T} %so_far${i} = min(%so_far${i - 1}, ${data_0[i]})
@end
@let ${T} %min = %so_far${len(data_0) - 1}
