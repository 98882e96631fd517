// Fails unless p, of rank 1 or a scalar, has one element or `count`.
@macro p, count
@do numbers(p)
@if rank(p) > 1
@if len([d for d in dims(p) if d == 1]) < rank(p)
@refuse "a scale or zero point has more than one axis"
@end
@elif rank(p) == 1
@if not (numbers[0] == 1 or numbers[0] >= 0 and numbers[0] == count)
@let i1(index) %fits = ${numbers[0]} == 1 || ${numbers[0]} == ${count}
cf.assert %fits, "${place()}: a scale or zero point does not have one number per channel"
@end
@end
