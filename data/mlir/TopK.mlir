// The k largest or smallest elements along an axis, in order, and their places; the first of equal
// ones comes first. What is not a number is larger than all numbers.
@set r = rank(X)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set E = elem(X)
@set S = scalar(X)
@set T = E in ["f64", "i64", "u64"] ? "i64" : "i32"
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@do check_length(K, 1)
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
// A few are kept in a list in order, into which elements are put that come before its last; more of
// them are the first ones after sorting.
@set few = known(wanted) and wanted > 0 and wanted <= 32
@set best = tensor([wanted], T)
@set found = tensor([few ? wanted : kinds[1]], "index")
%u0:2 = scf.for %o = %c0 to %lanes_0 step %c1 iter_args(%v0 = %values, %p0 = %places) -> (${V}, ${P}) {
  %u1:2 = scf.for %i = %c0 to %lanes_2 step %c1 iter_args(%v1 = %v0, %p1 = %p0) -> (${V}, ${P}) {
@if few
    %last = arith.constant ${wanted - 1} : index
    %no_keys = tensor.empty() : ${best}
    %no_places = tensor.empty() : ${found}
    %list:2 = scf.for %at = %c0 to %lanes_1 step %c1 iter_args(%keys0 = %no_keys, %at0 = %no_places) -> (${best}, ${found}) {
      %x = tensor.extract %lanes[%o, %at, %i] : ${L}
@do order_key("%x", E, "most", "%raw_key")
@let ${T} %key = ${attr("largest") != 0 ? "xor(%raw_key, -1)" : "%raw_key"}
@let index %filled = min(%at, %k)
      %worst = tensor.extract %keys0[%last] : ${best}
@let i1(index) %open = %filled < %k
@let i1(${T}) %comes_before = %key < %worst
@let i1 %enters = %open || %comes_before
@let index %end = %enters ? min(%filled + 1, %k) : 0
      %shifted:4 = scf.for %j = %c0 to %end step %c1 iter_args(%keys1 = %keys0, %at1 = %at0, %moving = %key, %moving_at = %at) -> (${best}, ${found}, ${T}, index) {
        %here = tensor.extract %keys1[%j] : ${best}
        %here_at = tensor.extract %at1[%j] : ${found}
@let i1(index) %is_free = %j >= %filled
@let i1(${T}) %is_less = %key < %here
@let i1 %takes = %is_free || %is_less
@let ${T} %stays = %takes ? %moving : %here
@let index %stays_at = %takes ? %moving_at : %here_at
@let ${T} %goes = %takes ? %here : %moving
@let index %goes_at = %takes ? %here_at : %moving_at
        %keys2 = tensor.insert %stays into %keys1[%j] : ${best}
        %at2 = tensor.insert %stays_at into %at1[%j] : ${found}
        scf.yield %keys2, %at2, %goes, %goes_at : ${best}, ${found}, ${T}, index
      }
      scf.yield %shifted#0, %shifted#1 : ${best}, ${found}
    }
    %order = tensor.cast %list#1 : ${found} to ${found}
@else
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
@end
    %u2:2 = scf.for %j = %c0 to %k step %c1 iter_args(%v2 = %v1, %p2 = %p1) -> (${V}, ${P}) {
      %from = tensor.extract %order[%j] : ${found}
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
