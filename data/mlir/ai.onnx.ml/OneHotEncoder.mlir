// 1 at the place of the category that an element is, 0 elsewhere.
@set cats = attr("cats_int64s")
@set r = rank(X)
@set all = ["d" + i for i in range(r)]
@set T = elem(X)
@set list = constant(cats, [len(cats)], "i64")
%empty = tensor.empty(${unknown_sizes(X)}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(${all + ["d" + r]}) -> (${all})>, affine_map<(${all + ["d" + r]}) -> (d${r})>, affine_map<(${all + ["d" + r]}) -> (${all + ["d" + r]})>],
    iterator_types = [${[quote("parallel") for i in range(r + 1)]}]}
    ins(%X, ${list} : ${type(X)}, ${tensor([len(cats)], "i64")}) outs(%empty : ${type(Y)}) {
^bb0(%value: ${scalar(X)}, %category: i64, %old: f32):
@let i1(f64) %is_same = f64(${T} %value) == f64(i64 %category)
@let f32 %hot = %is_same ? 1 : 0
  linalg.yield %hot : f32
} -> ${type(Y)}
@if attr("zeros") == 0
@let i1 %yes = true
%start = tensor.from_elements %yes : tensor<i1>
%every = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> ()>],
    iterator_types = [${[quote("reduction") for i in range(r)]}]}
    ins(%X : ${type(X)}) outs(%start : tensor<i1>) {
^bb0(%value: ${scalar(X)}, %so_far: i1):
@let f64 %number = f64(${T} %value)
@let i1 %known0 = false
@for i in range(len(cats))
@let i1(f64) %is${i} = %number == ${float(cats[i])}
@let i1 %known${i + 1} = or(%known${i}, %is${i})
@end
@let i1 %still = and(%so_far, %known${len(cats)})
  linalg.yield %still : i1
} -> tensor<i1>
%holds = tensor.extract %every[] : tensor<i1>
cf.assert %holds, "${place()}: an element is in no category"
@end
