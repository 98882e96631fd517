// The same as reduce, with axes that are known only when it runs: data is gone through once, and each
// element is added to the one of the result whose index is 0 in the axes that go.
@macro data, axes, reduced, how, noop
@set r = rank(data)
@set q = rank(reduced)
@set E = elem(data)
@set T = not is_float(data) ? E : E == "f64" or how == "product" or how == "sum" ? "f64" : "f32"
@do axis_mask(axes, r, "%listed")
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
@let i1(index) %all_go = ${noop ? "false" : "%c0" + " == " + size(axes, 0)}
@for i in range(r)
@let i1 %goes${i} = %listed${i} || %all_go
@let index %size${i} = %goes${i} ? 1 : ${size(data, i)}
@end
@set open = [none for i in range(r)]
@set acc = tensor(open, T)
@let ${T} %start = ${how == "sum" ? "0" : how == "product" ? "1" : how == "max" ? (E == "i1" ? "false" : "least") : E == "i1" ? "true" : "most"}
@set unknown = ["%size" + i for i in range(r)]
%empty = tensor.empty(${unknown}) : ${acc}
%t0 = linalg.fill ins(%start : ${bare(T)}) outs(%empty : ${acc}) -> ${acc}
@for i in range(r)
%u${i} = scf.for %i${i} = %c0 to ${size(data, i)} step %c1 iter_args(%t${i + 1} = %t${i}) -> (${acc}) {
@let index %at${i} = %goes${i} ? 0 : %i${i}
@end
  %x = tensor.extract ${data}[${["%i" + i for i in range(r)]}] : ${type(data)}
  %so_far = tensor.extract %t${r}[${["%at" + i for i in range(r)]}] : ${acc}
@let ${T} %wide = ${T}(${E} %x)
@let ${T} %next = ${how == "sum" ? "%so_far + %wide" : how == "product" ? "%so_far * %wide" : how == "max" ? "max(%so_far, %wide)" : "min(%so_far, %wide)"}
  %u${r} = tensor.insert %next into %t${r}[${["%at" + i for i in range(r)]}] : ${acc}
@for i in range(r)
  scf.yield %u${r - i} : ${acc}
}
@end
@do rounded_to("%u" + 0, open, unknown, T, E, "%narrow")
@if attr("keepdims") != 0
@set sizes = unknown
@set groups = [[[i], [i]] for i in range(r)]
@else
// The rank of the result is fixed: that many axes stay.
@for i in range(r)
@let index %stays${i} = %goes${i} ? 0 : 1
@end
@let i1(index) %as_many = ${join(["0"] + ["%stays" + i for i in range(r)], " + ")} == ${q}
cf.assert %as_many, "${place()}: its list of axes leaves another rank than ${q}, which the model says"
@do places(["%goes" + i for i in range(r)], unknown, q, "%left")
@set sizes = ["%left" + j for j in range(q)]
@set groups = q > 0 ? [[range(r), range(q)]] : []
@end
@for j in range(q)
@if known(dim(reduced, j))
@let i1(index) %fits${j} = ${sizes[j]} == ${dim(reduced, j)}
cf.assert %fits${j}, "${place()}: axis ${j} of its result has another size than the model says"
@end
@end
@do regrouped("%narrow", open, scalar(data), reduced, dims(reduced), groups, sizes)
