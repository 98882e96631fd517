// Fails unless a list has n elements; says nothing where that is sure.
@macro list, n
@set all = product([1] + dims(list))
@if not (known(all) and all == n)
@let i1(index) %enough = ${join(["1"] + sizes(list), " * ")} == ${n}
cf.assert %enough, "${place()}: a list it is given does not have ${n} element${n == 1 ? "" : "s"}"
@end
