// Gives `statistics`: names of the mean and of the variance of each channel of x, tensors of type
// W. Sums are made in f64.
@macro x, W, channels
@set r = rank(x)
@set all = ["d" + i for i in range(r)]
@set by = r > 1 ? "d1" : "0"
@set kinds = [quote(i == 1 ? "parallel" : "reduction") for i in range(r)]
@set one = channels >= 0 ? channels : none
@set unknown = [c for c in [channels] if not (c >= 0)]
@set wide = tensor([one], "f64")
@set line = tensor([one], W)
@do numbers(x)
@do multiplied([numbers[i] for i in range(r) if i != 1])
@let index %elements = ${product_of}
@let i64 %count_i = i64(index %elements)
@let f64 %count = f64(i64 %count_i)
@let f64 %zero = 0
@set before = none
@for pass in ["mean", "variance"]
@set is_mean = pass == "mean"
%empty_${pass} = tensor.empty(${unknown}) : ${wide}
%zero_${pass} = linalg.fill ins(%zero : f64) outs(%empty_${pass} : ${wide}) -> ${wide}
%sum_${pass} = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, ${is_mean ? "" : "affine_map<(" + join(all, ", ") + ") -> (" + by + ")>, "}affine_map<(${all}) -> (${by})>],
    iterator_types = [${kinds}]}
    ins(${x}${is_mean ? "" : ", " + "%wide_mean"} : ${type(x)}${is_mean ? "" : ", " + wide}) outs(%zero_${pass} : ${wide}) {
^bb0(%in_x: ${scalar(x)}${is_mean ? "" : ", " + "%m_wide" + ": f64"}, %so_far: f64):
@let f64 %v = f64(${elem(x)} %in_x)
@if is_mean
  %next = arith.addf %so_far, %v fastmath<reassoc> : f64
@else
@let f64 %square = (%v - %m_wide) * (%v - %m_wide)
  %next = arith.addf %so_far, %square fastmath<reassoc> : f64
@end
  linalg.yield %next : f64
} -> ${wide}
%out_${pass} = tensor.empty(${unknown}) : ${wide}
%wide_${pass} = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]}
    ins(%sum_${pass} : ${wide}) outs(%out_${pass} : ${wide}) {
^bb0(%sum: f64, %old: f64):
@let f64 %quotient = %sum / %count
  linalg.yield %quotient : f64
} -> ${wide}
@do rounded("%wide_" + pass, [one], "f64", [channels], W, "%result_" + pass)
@end
@set statistics = ["%result_mean", "%result_variance"]
@give statistics
