// Fails unless the n axes `named`0, `named`1 and so on, of type i64, are axes of a tensor of rank r, none of them
// named twice.
@macro n, named, r
@for k in range(n)
@let i1(i64) %inside${k} = ${named}${k} >= ${0 - r} && ${named}${k} < ${r}
cf.assert %inside${k}, "${place()}: an axis is outside the tensor"
@let i64 %plain${k} = ${named}${k} < 0 ? ${named}${k} + ${r} : ${named}${k}
@for j in range(k)
@let i1(i64) %apart${k}_${j} = %plain${j} != %plain${k}
cf.assert %apart${k}_${j}, "${place()}: an axis is listed twice"
@end
@end
