// Fails unless the product of the indices in `sizes` is the number of elements of data, none of them
// is below zero, and each is what dims says, where that is a number.
@macro data, sizes, dims
@let index %total = ${join(["1"] + sizes(data), " * ")}
@let index %asked = ${join(["1"] + sizes, " * ")}
// The product may have wrapped.
@let f64 %about = ${join(["1"] + ["f64(index " + s + ")" for s in sizes], " * ")}
@let i1(f64) %exact = %about < 9223372036854775808.0
cf.assert %exact, "${place()}: the sizes of its result do not fit the elements it is given"
@let i1(index) %fits = ${join(["%asked" + " == " + "%total"] + [known(dims[j]) ? sizes[j] + " == " + dims[j] : sizes[j] + " >= 0" for j in range(len(dims))], " && ")}
cf.assert %fits, "${place()}: the sizes of its result do not fit the elements it is given"
