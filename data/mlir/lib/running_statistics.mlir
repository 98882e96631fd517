// to = before * momentum + batch * (1 - momentum); batch is a tensor of type `line`.
@macro before, batch, line, W, to
%empty = tensor.empty(${unknown_sizes(before)}) : ${type(before)}
%next = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]}
    ins(${before}, ${batch} : ${type(before)}, ${line}) outs(%empty : ${type(before)}) {
^bb0(%old: ${scalar(before)}, %new: ${W}, %unread: ${scalar(before)}):
@let ${W} %wide = ${W}(${elem(before)} %old)
@let ${W} %sum = %wide * ${attr("momentum")} + %new * ${1 - attr("momentum")}
@let ${elem(before)} %less = ${elem(before)}(${W} %sum)
  linalg.yield %less : ${scalar(before)}
} -> ${type(before)}
${to} = tensor.cast %next : ${type(before)} to ${type(to)}
