// Gives `extents`: the elements of x, a row of i64 of which there are n, as numbers where they are
// known and else as names of indices.
@macro x, n
@set contents = const(x)
@if known(contents)
@set extents = contents
@else
@do check_length(x, n)
@for i in range(n)
@let index %at${i} = ${i}
%raw${i} = tensor.extract ${x}[%at${i}] : ${type(x)}
@let index %extent${i} = index(i64 %raw${i})
@end
@set extents = ["%extent" + i for i in range(n)]
@end
@give extents
