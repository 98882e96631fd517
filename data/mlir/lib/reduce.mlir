// reduced = the sum, product, largest or smallest element over axes, an operand or none. Sums of
// halves are taken in f32, products in f64, and rounded once. A sum of f32 along the last axis has
// many partial sums, those of the vectors it is made of, and is taken in f64 where it is very long;
// one across rows has only one for each column, and is taken in f64 where rows are more than a few.
@macro data, axes, reduced, how
@set r = rank(data)
@set given = not known(axes) ? [] : dim(axes, 0) == 0 ? [] : const(axes)
@set noop = attr("noop_with_empty_axes") != 0
@if known(given) and len(given) == 0 and noop
${reduced} = tensor.cast ${data} : ${type(data)} to ${type(reduced)}
@elif known(given)
@set gone = len(given) == 0 ? range(r) : [a < 0 ? a + r : a for a in given]
@set stay = [i for i in range(r) if not (i in gone)]
@set all = ["d" + i for i in range(r)]
@set many = product([dim(data, i) for i in gone])
@set across = r > 0 and not (r - 1 in gone)
@set double = across ? not (known(many) and many <= 4096) : known(many) and many > 65536
@set E = elem(data)
@set T = not is_float(data) ? E : E == "f64" or how == "product" or (how == "sum" and double) ? "f64" : "f32"
@let ${T} %start = ${how == "sum" ? "0" : how == "product" ? "1" : how == "max" ? (E == "i1" ? "false" : "least") : E == "i1" ? "true" : "most"}
@set kept = [dim(data, i) for i in stay]
@set partial = tensor(kept, T)
@set unknown = [size(data, i) for i in stay if not known(dim(data, i))]
%empty = tensor.empty(${unknown}) : ${partial}
%filled = linalg.fill ins(%start : ${bare(T)}) outs(%empty : ${partial}) -> ${partial}
%folded = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${["d" + i for i in stay]})>],
    iterator_types = [${[quote(i in gone ? "reduction" : "parallel") for i in range(r)]}]}
    ins(${data} : ${type(data)}) outs(%filled : ${partial}) {
^bb0(%x: ${scalar(data)}, %so_far: ${bare(T)}):
@let ${T} %wide = ${T}(${E} %x)
@let reassoc ${T} %next = ${how == "sum" ? "%so_far + %wide" : how == "product" ? "%so_far * %wide" : how == "max" ? "max(%so_far, %wide)" : "min(%so_far, %wide)"}
  linalg.yield %next : ${bare(T)}
} -> ${partial}
@do rounded_to("%folded", kept, unknown, T, E, "%narrow")
// Each axis that stays takes along the ones before it, the last one those behind it too.
@set keep = attr("keepdims") != 0
@set k = len(stay)
@set groups = [[[i], keep ? range(i == 0 ? 0 : stay[i - 1] + 1, i == k - 1 ? r : stay[i] + 1) : [i]] for i in range(k)]
@set sizes = [i in stay ? size(data, i) : "" for i in range(r)]
@do regrouped("%narrow", kept, scalar(data), reduced, dims(reduced), groups, keep ? sizes : [sizes[i] for i in stay])
@else
@do reduce_some(data, axes, reduced, how, noop)
@end
