// data with slices written, or joined, each at a tuple of indices into its first axes.
@set r = rank(data)
@set q = rank(indices)
@set m = dim(indices, q - 1)
@if not known(m)
@refuse "the length of its index tuples is not known"
@end
@if m > 0
@do check_indices(indices, [size(data, k) for k in range(m)])
@end
@set u = rank(updates)
@for i in range(u)
@do check_same(updates, i, i < q - 1 ? indices : data, i < q - 1 ? i : m + i - (q - 1))
@end
@set T = type(data)
%t0 = tensor.cast %data : ${T} to ${T}
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@for i in range(u + 1)
@if i == q - 1
@for k in range(m)
  %k${k} = arith.constant ${k} : index
  %raw${k} = tensor.extract %indices[${["%i" + j for j in range(q - 1)] + ["%k" + k]}] : ${type(indices)}
@let index %from${k} = index(i64 %raw${k})
@let index %at${k} = %from${k} < 0 ? %from${k} + ${size(data, k)} : %from${k}
@end
@end
@if i < u
%v${i} = scf.for %i${i} = %c0 to ${size(updates, i)} step %c1 iter_args(%t${i + 1} = %t${i}) -> (${T}) {
@end
@end
  %new = tensor.extract %updates[${["%i" + i for i in range(u)]}] : ${type(updates)}
@set place = ["%at" + k for k in range(m)] + ["%i" + i for i in range(q - 1, u)]
@if attr("reduction") == "none"
  %v${u} = tensor.insert %new into %t${u}[${place}] : ${T}
@else
  %old = tensor.extract %t${u}[${place}] : ${T}
@do joined("%old", "%new", elem(data), attr("reduction"), "%both")
  %v${u} = tensor.insert %both into %t${u}[${place}] : ${T}
@end
@for i in range(u)
  scf.yield %v${u - i} : ${T}
}
@end
%output = tensor.cast %v0 : ${T} to ${type(output)}
