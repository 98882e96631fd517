// Truths `to`0 to `to`(r - 1): is the axis among axes, a list that is known when it runs?
@macro axes, r, to
@set m = dim(axes, 0)
@if not known(m)
@refuse "the number of its axes is not known"
@end
@for k in range(m)
%k${k} = arith.constant ${k} : index
%raw${k} = tensor.extract ${axes}[%k${k}] : ${type(axes)}
@let index %given${k} = index(${elem(axes)} %raw${k})
@let index %axis${k} = %given${k} < 0 ? %given${k} + ${r} : %given${k}
@let i1(index) %inside${k} = %axis${k} >= 0 && %axis${k} < ${r}
cf.assert %inside${k}, "${place()}: an axis is outside the tensor"
@end
@for i in range(r)
@let i1(index) ${to}${i} = ${join(["false"] + ["%axis" + k + " == " + i for k in range(m)], " || ")}
@end
