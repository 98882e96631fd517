// to = the matrices of data, in f64, one behind the other; their number is the index `to`_count.
@macro data, to
@set r = rank(data)
@set d = dims(data)
@set kinds = [product(d[0:r - 2]), d[r - 2], d[r - 1]]
@do check_same(data, r - 2, data, r - 1)
@let index ${to}_count = ${join(["1"] + [size(data, i) for i in range(r - 2)], " * ")}
@let index %side = ${size(data, r - 1)}
%three_sizes = tensor.from_elements ${to}_count, %side, %side : tensor<3xindex>
%seen = tensor.reshape ${data}(%three_sizes) : (${type(data)}, tensor<3xindex>) -> ${tensor(kinds, scalar(data))}
%wide_room = tensor.empty(${(known(kinds[0]) ? [] : [to + "_count"]) + (known(kinds[1]) ? [] : ["%side"]) + (known(kinds[2]) ? [] : ["%side"])}) : ${tensor(kinds, "f64")}
${to} = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
    iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%seen : ${tensor(kinds, scalar(data))}) outs(%wide_room : ${tensor(kinds, "f64")}) {
^bb0(%element: ${scalar(data)}, %old_element: f64):
@let f64 %wide_element = f64(${elem(data)} %element)
  linalg.yield %wide_element : f64
} -> ${tensor(kinds, "f64")}
