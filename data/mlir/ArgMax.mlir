// The place of the largest element along an axis: the first of equal ones, or the last. What is not a
// number is larger than all numbers.
@set r = rank(data)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set stay = [i for i in range(r) if i != axis]
@set E = elem(data)
@set K = E in ["f64", "i64", "u64"] ? "i64" : "i32"
@set kept = [dim(data, i) for i in stay]
@set unknown = [size(data, i) for i in stay if not known(dim(data, i))]
@if not known(dim(data, axis))
@let i1(index) %some = ${size(data, axis)} > 0
cf.assert %some, "${place()}: axis ${axis} has no elements to choose from"
@end
@let ${K} %least = least
@let i64 %first = 0
%empty = tensor.empty(${unknown}) : ${tensor(kept, K)}
%keys = linalg.fill ins(%least : ${K}) outs(%empty : ${tensor(kept, K)}) -> ${tensor(kept, K)}
%empty_places = tensor.empty(${unknown}) : ${tensor(kept, "i64")}
%places = linalg.fill ins(%first : i64) outs(%empty_places : ${tensor(kept, "i64")}) -> ${tensor(kept, "i64")}
@set all = ["d" + i for i in range(r)]
@set to = ["d" + i for i in stay]
%best:2 = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${to})>, affine_map<(${all}) -> (${to})>],
    iterator_types = [${[quote(i == axis ? "reduction" : "parallel") for i in range(r)]}]}
    ins(%data : ${type(data)}) outs(%keys, %places : ${tensor(kept, K)}, ${tensor(kept, "i64")}) {
^bb0(%x: ${scalar(data)}, %best_key: ${K}, %best_place: i64):
  %at = linalg.index ${axis} : index
@do order_key("%x", E, "most", "%key")
@let i1(${K}) %better = %key ${attr("select_last_index") != 0 ? ">=" : ">"} %best_key
@let ${K} %next_key = %better ? %key : %best_key
@let i64 %next_place = %better ? i64(index %at) : %best_place
  linalg.yield %next_key, %next_place : ${K}, i64
} -> (${tensor(kept, K)}, ${tensor(kept, "i64")})
@set keep = attr("keepdims") != 0
@set k = len(stay)
@set groups = [[[i], keep ? range(i == 0 ? 0 : stay[i - 1] + 1, i == k - 1 ? r : stay[i] + 1) : [i]] for i in range(k)]
@set sizes = [i == axis ? "" : size(data, i) for i in range(r)]
%found = tensor.cast %best#1 : ${tensor(kept, "i64")} to ${tensor(kept, "i64")}
@do regrouped("%found", kept, "i64", reduced, dims(reduced), groups, keep ? sizes : [sizes[i] for i in stay])
