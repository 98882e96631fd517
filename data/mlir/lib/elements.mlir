// `to`0, `to`1 and so on: the n elements of a list, as i64: numbers where they are known.
@macro list, n, to
@set numbers = const(list)
@if not known(numbers)
@do check_length(list, n)
@end
@for k in range(n)
@if known(numbers)
@let i64 ${to}${k} = ${numbers[k]}
@else
%at${k} = arith.constant ${k} : index
%raw${k} = tensor.extract ${list}[${rank(list) == 0 ? "" : "%at" + k}] : ${type(list)}
@let i64 ${to}${k} = i64(${elem(list)} %raw${k})
@end
@end
