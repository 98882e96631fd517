// Gives `element`: that of p at indices, of which axes of size 1 take 0; or the one that
// lib/parameter has fetched.
@macro p, one, indices
@set element = one
@if not known(one)
@do numbers(p)
@for i in range(rank(p))
@if dim(p, i) == 1
@let index %at${i} = 0
@elif known(dim(p, i))
@let index %at${i} = ${indices[i]}
@else
@let index %at${i} = ${numbers[i]} == 1 ? 0 : ${indices[i]}
@end
@end
@set element = fresh()
${element} = tensor.extract ${p}[${["%at" + i for i in range(rank(p))]}] : ${type(p)}
@end
@give element
