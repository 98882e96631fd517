// A convolution of codes of 8 bits, less their zero points, in i32.
@do conv_integer(x, w, has(x_zero_point) ? x_zero_point : none, has(w_zero_point) ? w_zero_point : none, y)
%y = tensor.cast ${sums} : ${tensor(sum_dims, "i32")} to ${type(y)}
