// reduced = the sum, product, largest or smallest element over axes, an operand whose contents must
// be known, or none.
@macro data, axes, reduced, how
@set r = rank(data)
@set given = known(axes) ? const(axes) : []
@if known(axes) and not known(given)
@refuse "its axes are known only when it runs"
@end
@set none_given = len(given) == 0
@set idle = none_given and attr("noop_with_empty_axes") != 0
@set gone = [a < 0 ? a + r : a for a in given]
@set gone = none_given and not idle ? range(r) : gone
@set stay = [i for i in range(r) if not (i in gone)]
@set all = ["d" + i for i in range(r)]
// Halves are summed in f32, and rounded once.
@set T = scalar(data) == "f16" or scalar(data) == "bf16" ? "f32" : elem(data)
@set start = how == "sum" ? "0" : how == "product" ? "1" : how == "max" ? "least" : "most"
@let ${T} %start = ${start}
@set partial = tensor([dim(data, i) for i in stay], T)
%empty = tensor.empty(${[size(data, i) for i in stay if not known(dim(data, i))]}) : ${partial}
%filled = linalg.fill ins(%start : ${bare(T)}) outs(%empty : ${partial}) -> ${partial}
%folded = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${["d" + i for i in stay]})>],
    iterator_types = [${[quote(i in gone ? "reduction" : "parallel") for i in range(r)]}]}
    ins(${data} : ${type(data)}) outs(%filled : ${partial}) {
^bb0(%x: ${scalar(data)}, %so_far: ${bare(T)}):
@let ${T} %wide = ${T}(${elem(data)} %x)
@let ${T} %next = ${how == "sum" ? "%so_far + %wide" : how == "product" ? "%so_far * %wide" : how == "max" ? "max(%so_far, %wide)" : "min(%so_far, %wide)"}
  linalg.yield %next : ${bare(T)}
} -> ${partial}
@set narrow = tensor([dim(data, i) for i in stay], elem(data))
@if T != elem(data)
@set kept = ["d" + i for i in range(len(stay))]
%rounded_to = tensor.empty(${[size(data, i) for i in stay if not known(dim(data, i))]}) : ${narrow}
%rounded = linalg.generic {
    indexing_maps = [affine_map<(${kept}) -> (${kept})>, affine_map<(${kept}) -> (${kept})>],
    iterator_types = [${[quote("parallel") for i in stay]}]}
    ins(%folded : ${partial}) outs(%rounded_to : ${narrow}) {
^bb0(%x: ${bare(T)}, %old: ${scalar(data)}):
@let ${elem(data)} %less = ${elem(data)}(${T} %x)
  linalg.yield %less : ${scalar(data)}
} -> ${narrow}
@end
@set result = T != elem(data) ? "%rounded" : "%folded"
@do with_ones(result, narrow, stay, attr("keepdims") != 0 ? r : len(stay), reduced)
