// One value replaced by another, the same for all features or one for each.
@set floats = is_float(X)
@set values = floats ? attr("imputed_value_floats") : attr("imputed_value_int64s")
@set values = known(values) ? values : []
@set missing = floats ? attr("replaced_value_float") : attr("replaced_value_int64")
@set r = rank(X)
@set all = ["d" + i for i in range(r)]
@if len(values) != 1 and not (r > 0 and (not known(dim(X, r - 1)) or dim(X, r - 1) == len(values)))
@refuse "it has " + len(values) + " values, which do not fit its features"
@end
@if len(values) != 1 and not known(dim(X, r - 1))
@set have = size(X, r - 1)
@let i1(index) %fits = ${have} == ${len(values)}
cf.assert %fits, "${place()}: it does not have one value for each feature"
@end
@set T = elem(X)
@set list = constant(values, [len(values)], T)
%empty = tensor.empty(${unknown_sizes(X)}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${len(values) == 1 ? "0" : "d" + (r - 1)})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in range(r)]}]}
    ins(%X, ${list} : ${type(X)}, ${tensor([len(values)], T)}) outs(%empty : ${type(Y)}) {
^bb0(%value: ${scalar(X)}, %instead: ${scalar(X)}, %old: ${scalar(X)}):
@if floats and missing != missing
@let i1(${T}) %absent = %value != %value
@else
@set W = floats ? "f64" : "i64"
  %missing = arith.constant ${literal(missing, W)} : ${W}
@let i1(${W}) %absent = ${W}(${T} %value) == %missing
@end
@let ${T} %either = %absent ? %instead : %value
  linalg.yield %either : ${scalar(X)}
} -> ${type(Y)}
