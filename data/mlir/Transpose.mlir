// Axes in another order.
@set perm = attr("perm")
@set r = rank(data)
@set order = known(perm) ? perm : [r - 1 - i for i in range(r)]
%empty = tensor.empty(${[size(data, order[i]) for i in range(r) if not known(dim(transposed, i))]}) : ${type(transposed)}
%transposed = linalg.transpose ins(%data : ${type(data)}) outs(%empty : ${type(transposed)}) permutation = [${order}]
