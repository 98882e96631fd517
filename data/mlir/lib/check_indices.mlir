// Fails unless all of indices, a tensor of i32 or i64, are from -limit to limit - 1. Where it has more
// limits than one, they are for the places along its last axis.
@macro indices, limits
@set r = rank(indices)
@set numbers = const(indices)
@set all = ["d" + i for i in range(r)]
%yes = arith.constant true
%start = tensor.from_elements %yes : tensor<i1>
@for k in range(len(limits))
@let i64 %limit${k} = i64(index ${limits[k]})
@end
%checked = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> ()>],
    iterator_types = [${[quote("reduction") for i in range(r)]}]}
    ins(${indices} : ${type(indices)}) outs(%start : tensor<i1>) {
^bb0(%raw: ${scalar(indices)}, %so_far: i1):
@let i64 %i = i64(${elem(indices)} %raw)
@if len(limits) > 1
  %k = linalg.index ${r - 1} : index
@end
@let i64 %most0 = %limit0
@for k in range(1, len(limits))
@let i1(index) %is${k} = %k == ${k}
@let i64 %most${k} = %is${k} ? %limit${k} : %most${k - 1}
@end
@set most = "%most" + (len(limits) - 1)
@let i1(i64) %inside = %i >= -${most} && %i < ${most}
  %both = arith.andi %inside, %so_far : i1
  linalg.yield %both : i1
} -> tensor<i1>
%holds = tensor.extract %checked[] : tensor<i1>
cf.assert %holds, "${place()}: an index is outside the tensor it selects from"
