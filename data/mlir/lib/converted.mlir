// Gives `value`: the name of x as a tensor of type T; x itself where it has that type. x has sizes
// and type `from`.
@macro x, dims, sizes, from, T
@set value = x
@if from != T
@set value = fresh()
@do rounded(x, dims, from, sizes, T, value)
@end
@give value
