// Broadcasts to a shape, which may itself be broadcast.
@set r = rank(input)
@set q = rank(output)
@set target = const(shape)
@set n = dim(shape, 0)
@if not known(n)
@refuse "the number of sizes it is given is not known"
@end
// How axes are read: along with the result, at 0, or, where that is seen when it runs, either.
@set along = [same(input, i, output, i + q - r) for i in range(r)]
@set fixed = known(target)
@set fetched = len([i for i in range(r) if not along[i] and not known(dim(input, i))]) > 0
@set sizes = []
@for j in range(q)
@set i = j - (q - r)
@set k = j - (q - n)
@if i >= 0 and k >= 0 and not (known(dim(input, max(i, 0))) and fixed)
@if fixed
@let index %asked${j} = ${target[k]}
@else
%k${j} = arith.constant ${k} : index
%raw${j} = tensor.extract %shape[%k${j}] : ${type(shape)}
@let index %asked${j} = index(i64 %raw${j})
@end
@let index %size${j} = %asked${j} == 1 ? ${size(input, i)} : %asked${j}
@let i1(index) %fits${j} = (%asked${j} >= 0 && ${known(dim(output, j)) ? "%size" + j + " == " + dim(output, j) : "true"}) && (${size(input, i)} == 1 || ${size(input, i)} == %size${j})
cf.assert %fits${j}, "${place()}: size of axis ${j} cannot be broadcast to the one that is asked for"
@set sizes = sizes + ["%size" + j]
@elif known(dim(output, j)) and fixed
@set sizes = sizes + [""]
@elif i >= 0 and k < 0
@set sizes = sizes + [size(input, i)]
@else
%k${j} = arith.constant ${k} : index
%raw${j} = tensor.extract %shape[%k${j}] : ${type(shape)}
@let index %size${j} = index(i64 %raw${j})
@let i1(index) %fits${j} = %size${j} >= 0 && ${known(dim(output, j)) ? "%size" + j + " == " + dim(output, j) : "true"}
cf.assert %fits${j}, "${place()}: size of axis ${j} cannot be broadcast to the one that is asked for"
@set sizes = sizes + ["%size" + j]
@end
@end
@set all = ["d" + j for j in range(q)]
@set read = [known(dim(input, i)) and dim(input, i) == 1 and dim(output, i + q - r) != 1 ? "0" : "d" + (i + q - r) for i in range(r)]
%empty = tensor.empty(${[sizes[j] for j in range(q) if not known(dim(output, j))]}) : ${type(output)}
%output = linalg.generic {
    indexing_maps = [${fetched ? "" : "affine_map<(" + join(all, ", ") + ") -> (" + join(read, ", ") + ")>, "}affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for j in all]}]}
@if not fetched
    ins(%input : ${type(input)})
@end
    outs(%empty : ${type(output)}) {
@if fetched
^bb0(%old: ${scalar(output)}):
@for i in range(r)
  %d${i} = linalg.index ${i + q - r} : index
@let index %at${i} = ${size(input, i)} == 1 ? 0 : %d${i}
@end
  %x = tensor.extract %input[${["%at" + i for i in range(r)]}] : ${type(input)}
@else
^bb0(%x: ${scalar(input)}, %old: ${scalar(output)}):
@end
  linalg.yield %x : ${scalar(output)}
} -> ${type(output)}
