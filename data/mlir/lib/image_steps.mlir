// Gives `steps`: from element to neighbour along each spatial axis of an image, and `plane`, the
// elements of one channel; numbers or names.
@macro sizes
@set r = len(sizes) - 2
@set steps = []
@set plane = 1
@for j in range(r)
@set steps = [plane] + steps
@do multiplied([plane, sizes[r + 1 - j]])
@set plane = product_of
@end
@give steps, plane
