// Gives `value`: the matrix x, of dims, sizes and type T, transposed if `is_turned`.
@macro x, dims, sizes, T, is_turned
@set value = x
@if is_turned
@set value = fresh()
@set to = tensor([dims[1], dims[0]], T)
%empty = tensor.empty(${[sizes[1 - i] for i in range(2) if not known(dims[1 - i])]}) : ${to}
${value} = linalg.transpose ins(${x} : ${tensor(dims, T)}) outs(%empty : ${to}) permutation = [1, 0]
@end
@give value
