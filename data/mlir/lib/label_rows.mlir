// out, a result of the node, = the labels (a list of integers) of the classes `best`, a tensor of i64.
@macro best, rows, n, labels, out
@set I = tensor([rows], "i64")
@set names = constant(labels, [len(labels)], "i64")
%label_empty = tensor.empty(${known(rows) ? [] : [n]}) : ${type(out)}
${out} = linalg.generic {
    indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
    ins(${best} : ${I}) outs(%label_empty : ${type(out)}) {
^bb0(%class: i64, %old: i64):
@let index %at = index(i64 %class)
  %label = tensor.extract ${names}[%at] : ${tensor([len(labels)], "i64")}
  linalg.yield %label : i64
} -> ${type(out)}
