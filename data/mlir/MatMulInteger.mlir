// The product of matrices of codes of 8 bits, less their zero points, in i32.
@do product_integer(A, B, has(a_zero_point) ? a_zero_point : none, has(b_zero_point) ? b_zero_point : none, Y)
%Y = tensor.cast ${sums} : ${tensor(sum_dims, "i32")} to ${type(Y)}
