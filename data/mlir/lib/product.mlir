// C = A B by rows of memory, as lib/product_blocks, or lib/product_thin where there are few rows.
@macro T, m, n, k, a, a_at, b, b_at, c, c_at
@if m >= 0 and m < 4
@do product_thin(T, m, n, k, a, a_at, k, b, b_at, n, c, c_at, n)
@elif m >= 0
@do product_blocks(T, m, n, k, a, a_at, k, b, b_at, n, none, none, c, c_at, n, none, 0)
@else
@let i1(index) %is_thin = ${m} < 4
scf.if %is_thin {
@do product_thin(T, m, n, k, a, a_at, k, b, b_at, n, c, c_at, n)
} else {
@do product_blocks(T, m, n, k, a, a_at, k, b, b_at, n, none, none, c, c_at, n, none, 0)
}
@end
