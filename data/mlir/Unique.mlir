// The different elements of a tensor, or its different slices along an axis; where each was first,
// which one each is equal to, and how often each is there.
@set r = rank(X)
@set flat = not known(attr("axis"))
@set axis = flat ? 0 : attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set E = elem(X)
@set S = scalar(X)
@set T = E in ["f64", "i64", "u64"] ? "i64" : "i32"
@set d = dims(X)
@set kinds = flat ? [1, product(d), 1] : [product(d[0:axis]), d[axis], product(d[axis + 1:])]
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@if flat
@let index %lanes_0 = 1
@let index %lanes_1 = ${join(["1"] + sizes(X), " * ")}
@let index %lanes_2 = 1
%three_sizes = tensor.from_elements %lanes_0, %lanes_1, %lanes_2 : tensor<3xindex>
%lanes = tensor.reshape %X(%three_sizes) : (${type(X)}, tensor<3xindex>) -> ${tensor(kinds, S)}
@else
@do lanes(X, axis, "", kinds, "%lanes")
@end
@set L = tensor(kinds, S)
// A column of keys for each item, which are sorted; equal ones are then neighbours.
@let index %rows = %lanes_0 * %lanes_2
@set rows = kinds[0] * kinds[2]
@set N = kinds[1]
@set keys = tensor([rows, N], T)
@set all = tensor([N], "index")
%room = tensor.empty(${(known(rows) ? [] : ["%rows"]) + (known(N) ? [] : ["%lanes_1"])}) : ${keys}
%keys = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    outs(%room : ${keys}) {
^bb0(%old: ${T}):
  %row = linalg.index 0 : index
  %item = linalg.index 1 : index
@let index %outer = %row / %lanes_2
@let index %inner = rem(%row, %lanes_2)
  %element = tensor.extract %lanes[%outer, %item, %inner] : ${L}
@do order_key("%element", E, "most", "%key")
  linalg.yield %key : ${T}
} -> ${keys}
@do sorted("%keys", rows, N, "%rows", "%lanes_1", T, "%order")
// The number of each item's group, and the first item of each group.
@for k in range(3)
%blank${k} = tensor.empty(${known(N) ? "" : "%lanes_1"}) : ${all}
@end
%yes = arith.constant true
%grouped:3 = scf.for %p = %c0 to %lanes_1 step %c1 iter_args(%group0 = %blank0, %first0 = %blank1, %count0 = %c0) -> (${all}, ${all}, index) {
  %one = tensor.extract %order[%p] : ${all}
@let index %before = max(%p - 1, 0)
  %previous = tensor.extract %order[%before] : ${all}
  %equal = scf.for %q = %c0 to %rows step %c1 iter_args(%same0 = %yes) -> (i1) {
    %key_one = tensor.extract %keys[%q, %one] : ${keys}
    %key_previous = tensor.extract %keys[%q, %previous] : ${keys}
@let i1(${T}) %same_key = %key_one == %key_previous
@let i1 %same1 = %same0 && %same_key
    scf.yield %same1 : i1
  }
@let i1(index) %is_first = %p == 0
@let i1 %is_new = !%equal || %is_first
@let index %count1 = %is_new ? %count0 + 1 : %count0
@let index %number = %count1 - 1
  %group1 = tensor.insert %number into %group0[%one] : ${all}
  %kept = tensor.extract %first0[%number] : ${all}
@let index %first_one = %is_new ? %one : %kept
  %first1 = tensor.insert %first_one into %first0[%number] : ${all}
  scf.yield %group1, %first1, %count1 : ${all}, ${all}, index
}
// Groups are numbered in the order of their keys, or of their first items.
@if attr("sorted") != 0
%ids = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%blank2 : ${all}) {
^bb0(%old: index):
  %own = linalg.index 0 : index
  linalg.yield %own : index
} -> ${all}
@else
%numbered:2 = scf.for %i = %c0 to %lanes_1 step %c1 iter_args(%ids0 = %blank2, %next0 = %c0) -> (${all}, index) {
  %group_of = tensor.extract %grouped#0[%i] : ${all}
  %first_of = tensor.extract %grouped#1[%group_of] : ${all}
@let i1(index) %begins = %first_of == %i
  %id_before = tensor.extract %ids0[%group_of] : ${all}
@let index %id = %begins ? %next0 : %id_before
@let index %next1 = %begins ? %next0 + 1 : %next0
  %ids1 = tensor.insert %id into %ids0[%group_of] : ${all}
  scf.yield %ids1, %next1 : ${all}, index
}
%ids = tensor.cast %numbered#0 : ${all} to ${all}
@end
@let index %groups = %grouped#2
@set many = tensor([none], "i64")
@if has(Y)
@set G = [kinds[0], none, kinds[2]]
%to = tensor.empty(${(known(kinds[0]) ? [] : ["%lanes_0"]) + ["%groups"] + (known(kinds[2]) ? [] : ["%lanes_2"])}) : ${tensor(G, S)}
%y0 = scf.for %g = %c0 to %groups step %c1 iter_args(%ya = %to) -> (${tensor(G, S)}) {
  %from = tensor.extract %grouped#1[%g] : ${all}
  %onto = tensor.extract %ids[%g] : ${all}
  %y1 = scf.for %o = %c0 to %lanes_0 step %c1 iter_args(%yb = %ya) -> (${tensor(G, S)}) {
    %y2 = scf.for %i = %c0 to %lanes_2 step %c1 iter_args(%yc = %yb) -> (${tensor(G, S)}) {
      %element = tensor.extract %lanes[%o, %from, %i] : ${L}
      %yd = tensor.insert %element into %yc[%o, %onto, %i] : ${tensor(G, S)}
      scf.yield %yd : ${tensor(G, S)}
    }
    scf.yield %y2 : ${tensor(G, S)}
  }
  scf.yield %y1 : ${tensor(G, S)}
}
@if known(dim(Y, axis))
@let i1(index) %fits = %groups == ${dim(Y, axis)}
cf.assert %fits, "${place()}: it finds another number of elements than the model says"
@end
@do regrouped("%y0", G, S, Y, dims(Y), [[range(3), range(rank(Y))]], flat ? ["%groups"] : [i == axis ? "%groups" : size(X, i) for i in range(r)])
@end
@if has(indices)
%indices_room = tensor.empty(%groups) : ${many}
%indices_all = scf.for %g = %c0 to %groups step %c1 iter_args(%ta = %indices_room) -> (${many}) {
  %from = tensor.extract %grouped#1[%g] : ${all}
  %onto = tensor.extract %ids[%g] : ${all}
@let i64 %wide = i64(index %from)
  %tb = tensor.insert %wide into %ta[%onto] : ${many}
  scf.yield %tb : ${many}
}
%indices = tensor.cast %indices_all : ${many} to ${type(indices)}
@end
@if has(inverse_indices)
%inverse_room = tensor.empty(%lanes_1) : ${many}
%inverse_all = scf.for %i = %c0 to %lanes_1 step %c1 iter_args(%ta = %inverse_room) -> (${many}) {
  %group_of = tensor.extract %grouped#0[%i] : ${all}
  %id = tensor.extract %ids[%group_of] : ${all}
@let i64 %wide = i64(index %id)
  %tb = tensor.insert %wide into %ta[%i] : ${many}
  scf.yield %tb : ${many}
}
%inverse_indices = tensor.cast %inverse_all : ${many} to ${type(inverse_indices)}
@end
@if has(counts)
%none_yet = arith.constant 0 : i64
%counts_room = tensor.empty(%groups) : ${many}
%counts_zero = linalg.fill ins(%none_yet : i64) outs(%counts_room : ${many}) -> ${many}
%counts_all = scf.for %i = %c0 to %lanes_1 step %c1 iter_args(%ta = %counts_zero) -> (${many}) {
  %group_of = tensor.extract %grouped#0[%i] : ${all}
  %id = tensor.extract %ids[%group_of] : ${all}
  %so_far = tensor.extract %ta[%id] : ${many}
@let i64 %one_more = %so_far + 1
  %tb = tensor.insert %one_more into %ta[%id] : ${many}
  scf.yield %tb : ${many}
}
%counts = tensor.cast %counts_all : ${many} to ${type(counts)}
@end
