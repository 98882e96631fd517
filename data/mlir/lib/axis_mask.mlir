// Truths `to`0 to `to`(r - 1): is the axis among axes, a list that is known when it runs?
@macro axes, r, to
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%no = arith.constant false
%n = arith.addi %zero, ${size(axes, 0)} : index
@for i in range(r)
${to}${i} = scf.for %k${i} = %zero to %n step %one iter_args(%so_far${i} = %no) -> (i1) {
  %raw${i} = tensor.extract ${axes}[%k${i}] : ${type(axes)}
@let index %given${i} = index(${elem(axes)} %raw${i})
@let i1(index) %is${i} = %given${i} == ${i} || %given${i} == ${i - r}
@let i1 %any${i} = %so_far${i} || %is${i}
  scf.yield %any${i} : i1
}
@let index %one_of${i} = ${to}${i} ? 1 : 0
@end
// As many axes as are listed, unless one of them is listed twice or is none.
@let index %found = ${join(["0"] + ["%one_of" + i for i in range(r)], " + ")}
@let i1(index) %once = %found == %n
cf.assert %once, "${place()}: an axis is outside the tensor or listed twice"
