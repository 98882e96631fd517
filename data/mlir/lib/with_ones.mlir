// to = the tensor `from` of a type, with axes of size 1 put in: its axes are axes `stay` of rank r; r
// as large as its own rank puts in none.
@macro from, type, stay, r, to
@if r == len(stay)
${to} = tensor.cast ${from} : ${type} to ${type(to)}
@else
// Each axis that stays takes along the ones before it, the last one those behind it too.
@set k = len(stay)
@set groups = [[j for j in range(i == 0 ? 0 : stay[i - 1] + 1, i == k - 1 ? r : stay[i] + 1)] for i in range(k)]
%wide = tensor.expand_shape ${from} [${["[" + join(g, ", ") + "]" for g in groups]}] output_shape [${[i in stay ? (known(dim(to, i)) ? dim(to, i) : "%s" + i) : 1 for i in range(r)]}] : ${type} into ${tensor([i in stay ? dim(to, i) : 1 for i in range(r)], elem(to))}
${to} = tensor.cast %wide : ${tensor([i in stay ? dim(to, i) : 1 for i in range(r)], elem(to))} to ${type(to)}
@end
