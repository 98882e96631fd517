// Tensors one behind the other along an axis.
@set r = rank(concat_result)
@set axis = attr("axis") < 0 ? attr("axis") + r : attr("axis")
@set n = len(inputs)
// Where each begins: a number, or, behind one of unknown size, the name of an index.
@set fixed = 0
@for x in inputs
@set fixed = known(dim(x, axis)) and fixed >= 0 ? fixed + 1 : fixed >= 0 ? -1 - fixed : fixed
@end
@set fixed = fixed < 0 ? -1 - fixed : fixed
@set at = [0]
@for k in range(n)
@if k < fixed
@set at = at + [at[k] + dim(inputs[k], axis)]
@else
@let index %at${k + 1} = ${at[k]} + ${size(inputs[k], axis)}
@set at = at + ["%at" + (k + 1)]
@end
@end
// The result's sizes as the operands have them must be those it is known to have.
@for i in range(r)
@for k in range(n)
@if i != axis and not same(inputs[k], i, concat_result, i)
@let i1(index) %same${k}_${i} = ${size(inputs[k], i)} == ${known(dim(concat_result, i)) ? dim(concat_result, i) : size(inputs[0], i)}
cf.assert %same${k}_${i}, "${place()}: operand ${k} has another size of axis ${i} than the result"
@end
@end
@end
@if fixed < n and known(dim(concat_result, axis))
@let i1(index) %whole = ${at[n]} == ${dim(concat_result, axis)}
cf.assert %whole, "${place()}: its operands have other sizes of axis ${axis} than the model says of their result"
@end
%to0 = tensor.empty(${[i == axis ? at[n] : size(inputs[0], i) for i in range(r) if not known(dim(concat_result, i))]}) : ${type(concat_result)}
@for k in range(n)
@set x = inputs[k]
${k == n - 1 ? "%concat_result" : "%to" + (k + 1)} = tensor.insert_slice ${x} into %to${k}[${[i == axis ? at[k] : 0 for i in range(r)]}] [${[known(dim(x, i)) ? dim(x, i) : size(x, i) for i in range(r)]}] [${[1 for i in range(r)]}] : ${type(x)} into ${type(concat_result)}
@end
