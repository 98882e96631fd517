// Numbers from start by delta, up to limit and without it. Whole numbers wrap as unsigned ones do.
@whole
@set E = elem(output)
@set real = is_float(output)
@set W = real ? "f64" : "i64"
@set names = ["start", "limit", "delta"]
@set operands = [start, limit, delta]
%zero = arith.constant 0 : index
@for k in range(3)
@do check_length(operands[k], 1)
%raw${k} = tensor.extract ${operands[k]}[${["%zero" for i in range(rank(operands[k]))]}] : ${type(operands[k])}
@if E == "f16" or E == "bf16"
@let f32 %single${k} = f32(${E} %raw${k})
@let f64 %wide${k} = f64(f32 %single${k})
@elif E == W
@let ${W} %wide${k} = %raw${k}
@else
@let ${W} %wide${k} = ${W}(${E} %raw${k})
@end
@end
@let i1(${W}) %moves = %wide2 != 0
cf.assert %moves, "${place()}: delta is 0"
@if real
@let f64 %steps = ceil((%wide1 - %wide0) / %wide2)
@let i1(f64) %finite = %steps < 4611686018427387904.0
cf.assert %finite, "${place()}: start, limit and delta do not give a finite number of elements"
@let f64 %forward = max(%steps, 0)
@let i64 %count = i64(f64 %forward)
@else
// The distance may need 64 bits without a sign: (distance - 1) / step + 1.
@let i1(i64) %up = %wide2 > 0
@let i64 %low = %up ? %wide0 : %wide1
@let i64 %high = %up ? %wide1 : %wide0
@let i64 %pace = %up ? %wide2 : -%wide2
@let i1(i64) %any = %low < %high
@let u64 %before = (%high - %low - 1) / %pace
@let i64 %some = %before + 1
@let i64 %count = %any ? %some : 0
@let i1(i64) %countable = %count >= 0
cf.assert %countable, "${place()}: start, limit and delta do not give a finite number of elements"
@end
@let index %size = index(i64 %count)
@if known(dim(output, 0))
@let i1(index) %fits = %size == ${dim(output, 0)}
cf.assert %fits, "${place()}: its result has another size than the model says"
@end
%empty = tensor.empty(${known(dim(output, 0)) ? "" : "%size"}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    outs(%empty : ${type(output)}) {
^bb0(%old: ${scalar(output)}):
  %i = linalg.index 0 : index
@let i64 %place = i64(index %i)
@if real
@let f64 %nth = f64(i64 %place)
@let f64 %value = %wide0 + %nth * %wide2
@if E == "f16" or E == "bf16"
@let f32 %near = f32(f64 %value)
@let ${E} %y = ${E}(f32 %near)
@elif E == "f64"
@let f64 %y = %value
@else
@let ${E} %y = ${E}(f64 %value)
@end
@else
@let i64 %value = %wide0 + %place * %wide2
@if E == "i64"
@let i64 %y = %value
@else
@let ${E} %y = ${E}(i64 %value)
@end
@end
  linalg.yield %y : ${scalar(output)}
} -> ${type(output)}
