// The k largest or smallest elements along an axis, in order, and their places; the first of equal
// ones comes first. What is not a number is larger than all numbers.
@set r = rank(X)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set E = elem(X)
@set S = scalar(X)
@set T = E in ["f64", "i64", "u64"] ? "i64" : "i32"
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%asked = tensor.extract %K[${["%c0" for i in range(rank(K))]}] : ${type(K)}
@let index %k = index(i64 %asked)
@set wanted = dim(Values, axis)
@if not known(wanted) or not known(const(K)) or not known(dim(X, axis))
@let i1(index) %fits = %k >= 0 && %k <= ${size(X, axis)} && %k ${known(wanted) ? "== " + wanted : ">= 0"}
cf.assert %fits, "${place()}: K does not fit the size of axis ${axis}"
@end
@set d = dims(X)
@set kinds = [product(d[0:axis]), d[axis], product(d[axis + 1:])]
@do lanes(X, axis, "", kinds, "%lanes")
@set L = tensor(kinds, S)
@set chosen = [kinds[0], wanted, kinds[2]]
@set unknown = [i == 1 ? "%k" : "%lanes_" + i for i in range(3) if not known(chosen[i])]
@set V = tensor(chosen, S)
@set P = tensor(chosen, "i64")
%values = tensor.empty(${unknown}) : ${V}
%places = tensor.empty(${unknown}) : ${P}
@set row = tensor([1, kinds[1]], T)
%u0:2 = scf.for %o = %c0 to %lanes_0 step %c1 iter_args(%v0 = %values, %p0 = %places) -> (${V}, ${P}) {
  %u1:2 = scf.for %i = %c0 to %lanes_2 step %c1 iter_args(%v1 = %v0, %p1 = %p0) -> (${V}, ${P}) {
    %room = tensor.empty(${known(kinds[1]) ? "" : "%lanes_1"}) : ${row}
    %keys = linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
        outs(%room : ${row}) {
    ^bb0(%old: ${T}):
      %at = linalg.index 1 : index
      %x = tensor.extract %lanes[%o, %at, %i] : ${L}
@do order_key("%x", E, "most", "%key")
@if attr("largest") != 0
@let ${T} %turned = xor(%key, -1)
      linalg.yield %turned : ${T}
@else
      linalg.yield %key : ${T}
@end
    } -> ${row}
@do sorted("%keys", 1, kinds[1], "%c1", "%lanes_1", T, "%order")
    %u2:2 = scf.for %j = %c0 to %k step %c1 iter_args(%v2 = %v1, %p2 = %p1) -> (${V}, ${P}) {
      %from = tensor.extract %order[%j] : ${tensor([kinds[1]], "index")}
      %value = tensor.extract %lanes[%o, %from, %i] : ${L}
@let i64 %place = i64(index %from)
      %v3 = tensor.insert %value into %v2[%o, %j, %i] : ${V}
      %p3 = tensor.insert %place into %p2[%o, %j, %i] : ${P}
      scf.yield %v3, %p3 : ${V}, ${P}
    }
    scf.yield %u2#0, %u2#1 : ${V}, ${P}
  }
  scf.yield %u1#0, %u1#1 : ${V}, ${P}
}
@set groups = [[range(3), range(r)]]
@set sizes = [i == axis ? "%k" : size(X, i) for i in range(r)]
@if has(Values)
@do regrouped("%u0#0", chosen, S, Values, dims(Values), groups, sizes)
@end
@if has(Indices)
@do regrouped("%u0#1", chosen, "i64", Indices, dims(Indices), groups, sizes)
@end
