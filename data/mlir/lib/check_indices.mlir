// Fails unless all of indices, a tensor of i32 or i64, are from -limit to limit - 1.
@macro indices, limit
@set r = rank(indices)
@set all = ["d" + i for i in range(r)]
%yes = arith.constant true
%start = tensor.from_elements %yes : tensor<i1>
%checked = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> ()>],
    iterator_types = [${[quote("reduction") for i in range(r)]}]}
    ins(${indices} : ${type(indices)}) outs(%start : tensor<i1>) {
^bb0(%raw: ${scalar(indices)}, %so_far: i1):
@let index %i = index(${elem(indices)} %raw)
@let i1(index) %inside = %i >= -${limit} && %i < ${limit}
  %both = arith.andi %inside, %so_far : i1
  linalg.yield %both : i1
} -> tensor<i1>
%holds = tensor.extract %checked[] : tensor<i1>
cf.assert %holds, "${place()}: an index is outside the tensor it selects from"
