// Fails unless axis i of x is at most as long as axis j of y; says nothing where that is sure.
@macro x, i, y, j
@if not same(x, i, y, j) and not (known(dim(x, i)) and known(dim(y, j)) and dim(x, i) <= dim(y, j))
@let i1(index) %fits = ${size(x, i)} <= ${size(y, j)}
cf.assert %fits, "${place()}: sizes of its operands do not fit each other"
@end
