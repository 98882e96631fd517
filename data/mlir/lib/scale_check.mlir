// Fails where a scale or zero point does not fit the sizes of the result along the axes it goes by.
@macro p, axes, sizes
@if len([d for d in dims(p) if d == 1]) < rank(p)
@if len([a for a in axes if a < 0]) > 0
@refuse "a scale has more axes than the result"
@end
@do zero_check(p, axes, sizes)
@end
