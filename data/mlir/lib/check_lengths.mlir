// Fails unless all of a list of lengths, of type i32 or i64, are from 0 to most, an index.
@macro lengths, most
%yes = arith.constant true
%start = tensor.from_elements %yes : tensor<i1>
@let i64 %limit = i64(index ${most})
%checked = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
    ins(${lengths} : ${type(lengths)}) outs(%start : tensor<i1>) {
^bb0(%raw: ${scalar(lengths)}, %so_far: i1):
@let i64 %length = i64(${elem(lengths)} %raw)
@let i1(i64) %inside = %length >= 0 && %length <= %limit
  %both = arith.andi %inside, %so_far : i1
  linalg.yield %both : i1
} -> tensor<i1>
%holds = tensor.extract %checked[] : tensor<i1>
cf.assert %holds, "${place()}: the length of a sequence is below 0 or longer than its axis"
