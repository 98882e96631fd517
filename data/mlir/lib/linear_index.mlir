// at (an index) = the place of an element (names of indices) among all of x, rows one after the other.
@macro x, indices, at
@let index %at0 = 0
@for i in range(rank(x))
@set n = size(x, i)
@let index %at${i + 1} = %at${i} * ${n} + ${indices[i]}
@end
@let index ${at} = %at${rank(x)}
