// Gives `product_of`: the product of sizes, a number where all are known, else the name of an index.
@macro sizes
@set all_known = len([s for s in sizes if s >= 0]) == len(sizes)
@if all_known
@set product_of = product(sizes)
@else
@let index %p0 = 1
@for i in range(len(sizes))
@let index %p${i + 1} = %p${i} * ${sizes[i]}
@end
@set product_of = "%p" + len(sizes)
@end
@give product_of
