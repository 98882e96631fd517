// Fails unless axis i of x is as long as axis j of y; says nothing where that is sure.
@macro x, i, y, j
@if not same(x, i, y, j)
@let i1(index) %equal = ${size(x, i)} == ${size(y, j)}
cf.assert %equal, "${place()}: sizes of its operands do not fit each other"
@end
