// Gives `one`: where p surely has one element, its name, fetched here, before the loops; else none.
@macro p
@set one = none
@if len([d for d in dims(p) if d == 1]) == rank(p)
@set one = fresh()
%zero = arith.constant 0 : index
${one} = tensor.extract ${p}[${["%zero" for d in dims(p)]}] : ${type(p)}
@end
@give one
