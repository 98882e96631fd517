// 1, 0 or -1; NaN stays NaN.
@elementwise
@if is_float(input)
@let ${elem(input)} %output = %input > 0 ? 1 : %input < 0 ? -1 : %input == 0 ? 0 : %input
@elif is_unsigned(input)
@let ${elem(input)} %output = %input > 0 ? 1 : 0
@else
@let ${elem(input)} %output = %input > 0 ? 1 : %input < 0 ? -1 : 0
@end
