// The places of elements that are not zero, a column each.
@set r = rank(X)
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%start = tensor.from_elements %c0 : tensor<index>
@set all = ["d" + i for i in range(r)]
%counted = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> ()>],
    iterator_types = [${[quote("reduction") for i in all]}]}
    ins(%X : ${type(X)}) outs(%start : tensor<index>) {
^bb0(%x: ${scalar(X)}, %so_far: index):
@let i1(${elem(X)}) %is_there = %x != ${elem(X) == "i1" ? "false" : "0"}
@let index %more = %so_far + index(i1 %is_there)
  linalg.yield %more : index
} -> tensor<index>
%count = tensor.extract %counted[] : tensor<index>
@set T = tensor([r, none], "i64")
%t0 = tensor.empty(%count) : ${T}
@for i in range(r)
%u${i}:2 = scf.for %i${i} = %c0 to ${size(X, i)} step %c1 iter_args(%t${i + 1} = %t${i}, %n${i + 1} = ${i == 0 ? "%c0" : "%n" + i}) -> (${T}, index) {
@end
@if r > 0
  %x = tensor.extract %X[${["%i" + i for i in range(r)]}] : ${type(X)}
@let i1(${elem(X)}) %found = %x != ${elem(X) == "i1" ? "false" : "0"}
  %u${r}:2 = scf.if %found -> (${T}, index) {
    %s0 = tensor.cast %t${r} : ${T} to ${T}
@for i in range(r)
    %row${i} = arith.constant ${i} : index
@let i64 %place${i} = i64(index %i${i})
    %s${i + 1} = tensor.insert %place${i} into %s${i}[%row${i}, %n${r}] : ${T}
@end
@let index %next = %n${r} + 1
    scf.yield %s${r}, %next : ${T}, index
  } else {
    scf.yield %t${r}, %n${r} : ${T}, index
  }
@end
@for i in range(r)
  scf.yield %u${r - i}#0, %u${r - i}#1 : ${T}, index
}
@end
@if known(dim(Y, 1))
@let i1(index) %fits = %count == ${dim(Y, 1)}
cf.assert %fits, "${place()}: it finds another number of elements than the model says"
@end
%Y = tensor.cast ${r > 0 ? "%u0#0" : "%t0"} : ${T} to ${type(Y)}
