// X, handed on if the condition holds.
@whole
@if rank(condition) > 0
%zero = arith.constant 0 : index
@end
%holds = tensor.extract %condition[${["%zero" for i in range(rank(condition))]}] : ${type(condition)}
cf.assert %holds, "${place()}: ${attr("reason")}"
%Y = tensor.cast %X : ${type(X)} to ${type(Y)}
