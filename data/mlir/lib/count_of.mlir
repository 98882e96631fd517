// count (an index) = how many elements there are, of sizes that are numbers or names of indices.
@macro numbers, count
@let index %so_far0 = 1
@for i in range(len(numbers))
@let index %so_far${i + 1} = %so_far${i} * ${numbers[i]}
@end
@let index ${count} = %so_far${len(numbers)}
