// The Fourier transform along one axis; complex numbers are pairs along the last. A length of m times
// a power of two, m odd, is transformed by definition for m, then doubled step by step. Lines
// lie side by side meanwhile, so that inner loops run over them.
@set r = rank(input)
@set E = elem(input)
@set T = E == "f64" ? "f64" : "f32"
@set inverse = attr("inverse") != 0
@set onesided = attr("onesided") != 0
@set folded = inverse and onesided
@let index %zero = 0
@if dim(input, r - 1) != 1 and dim(input, r - 1) != 2
@let i1(index) %is_number = ${size(input, r - 1)} == 1 || ${size(input, r - 1)} == 2
cf.assert %is_number, "${place()}: the last axis of its signal is neither 1 nor 2 long"
@end
// The axis, and what is before and behind it.
@set where = has(axis) ? const(axis) : [-2]
@set a = known(where) ? (where[0] < 0 ? where[0] + r : where[0]) : none
@if known(a)
@let index %have = ${size(input, a)}
@let index %inner = ${join(["1"] + [size(input, b) for b in range(a + 1, r - 1)], " * ")}
@let index %outer = ${join(["1"] + [size(input, b) for b in range(a)], " * ")}
@set inner = product([1] + [dim(input, b) for b in range(a + 1, r - 1)])
@set lines = product([inner] + [dim(input, b) for b in range(a)])
@else
@do check_length(axis, 1)
%axis_raw = tensor.extract %axis[${["%zero" for b in range(rank(axis))]}] : ${type(axis)}
@let index %axis_given = index(i64 %axis_raw)
@let index %at = %axis_given < 0 ? %axis_given + ${r} : %axis_given
@let i1(index) %is_axis = %at >= 0 && %at < ${r - 1}
cf.assert %is_axis, "${place()}: its axis is out of range for the signal"
@let index %have0 = 1
@let index %inner0 = 1
@let index %outer0 = 1
@for b in range(r - 1)
@let index %have${b + 1} = %at == ${b} ? ${size(input, b)} : %have${b}
@let index %inner${b + 1} = %at < ${b} ? %inner${b} * ${size(input, b)} : %inner${b}
@let index %outer${b + 1} = %at > ${b} ? %outer${b} * ${size(input, b)} : %outer${b}
@end
@let index %have = %have${r - 1} * 1
@let index %inner = %inner${r - 1} * 1
@let index %outer = %outer${r - 1} * 1
@set inner = none
@set lines = none
@end
// The length, and how many results there are.
@set given = has(dft_length) ? const(dft_length) : none
@set n = known(given) ? given[0] : has(dft_length) or not known(a) or not known(dim(input, a)) ? none : folded ? 2 * (dim(input, a) - 1) : dim(input, a)
@if known(n)
@let index %n = ${n}
@elif has(dft_length)
@do check_length(dft_length, 1)
%length = tensor.extract %dft_length[${["%zero" for b in range(rank(dft_length))]}] : ${type(dft_length)}
@let index %n = index(${elem(dft_length)} %length)
@else
@let index %n = ${folded ? "2 * (" + "%have" + " - 1)" : "%have" + " * 1"}
@end
@let index %lines = %outer * %inner
@let i1(index) %is_length = %n >= 1 && %have >= 1 || %lines == 0
cf.assert %is_length, "${place()}: the transform or its signal has no elements"
@let index %results = ${onesided and not inverse ? "%n" + " / 2 + 1" : "%n" + " * 1"}
// The signal as rows of one or two lanes, and then as lines of numbers.
@set flat = tensor([product([dim(input, b) for b in range(r - 1)]), dim(input, r - 1)], E)
@if r > 2
%rows = tensor.collapse_shape %input [[${range(r - 1)}], [${r - 1}]] : ${type(input)} into ${flat}
@end
@set kind = tensor([n, lines], T)
@set open = (known(n) ? [] : ["%n"]) + (known(lines) ? [] : ["%lines"])
@do dft_load(r > 2 ? "%rows" : input, flat, E, T, kind, open, "%n", "%have", "%inner", size(input, r - 1), folded, "%re", "%im")
@set roots = tensor([n], T)
@if n <= 65536
@set turn = 6.283185307179586476925 / (known(n) ? n : 1) * (inverse ? 1 : -1)
@set cosines = constant([cos(turn * j) for j in range(n)], [n], T)
@set sines = constant([sin(turn * j) for j in range(n)], [n], T)
@else
@do dft_roots("%n", n, T, roots, inverse ? "1" : "-1", "%cosines", "%sines")
@set cosines = "%cosines"
@set sines = "%sines"
@end
@if known(n)
@set m = n
@set count = 0
@for j in range(40)
@set odd = m % 2
@set count = odd == 0 ? count + 1 : count
@set m = odd == 0 ? m / 2 : m
@end
@if m > 1
@let index %m = ${m}
@let index %parts = ${n / m}
@do dft_odd("%re", "%im", kind, open, "%m", m, "%parts", T, cosines, sines, roots, "%re_odd", "%im_odd")
@end
@set re = m > 1 ? "%re_odd" : "%re"
@set im = m > 1 ? "%im_odd" : "%im"
@set M = m
@for j in range(count)
@do dft_pair(re, im, M, n / M / 2, lines, known(lines) ? [] : ["%lines"], T, cosines, sines, n, "%re_" + j, "%im_" + j)
@set re = "%re_" + j
@set im = "%im_" + j
@set M = 2 * M
@end
@else
@let i64 %wide = i64(index %n)
%twos = math.cttz %wide : i64
@let index %count = index(i64 %twos)
@let index %parts = shl(1, %count)
@let index %m = %n / %parts
@do dft_odd("%re", "%im", kind, open, "%m", none, "%parts", T, cosines, sines, roots, "%re_odd", "%im_odd")
@do dft_steps("%re_odd", "%im_odd", kind, "%n", "%m", "%count", open, T, cosines, sines, roots, "%re_all", "%im_all")
@set re = "%re_all"
@set im = "%im_all"
@end
// The results as rows again, and in their own shape.
@set width = folded ? 1 : 2
@let index %out_rows = %lines * %results
@set table = tensor([product([dim(output, b) for b in range(r - 1)]), width], E)
@let ${T} %factor = ${inverse ? "1 / " + T + "(index " + "%n" + ")" : "1"}
%empty = tensor.empty(${known(product([dim(output, b) for b in range(r - 1)])) ? [] : ["%out_rows"]}) : ${table}
%written = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%empty : ${table}) {
^bb0(%old: ${scalar(output)}):
  %row = linalg.index 0 : index
  %lane = linalg.index 1 : index
@let index %above = %row / %inner
@let index %behind = %row - %above * %inner
@let index %before = %above / %results
@let index %k = %above - %before * %results
@let index %line = %before * %inner + %behind
  %x = tensor.extract ${re}[%k, %line] : ${kind}
@if width == 2
  %y = tensor.extract ${im}[%k, %line] : ${kind}
@let i1(index) %is_real = %lane == 0
  %z = arith.select %is_real, %x, %y : ${T}
@end
@let ${T} %scaled = ${width == 2 ? "%z" : "%x"} * %factor
@let ${E} %stored = ${E}(${T} %scaled)
  linalg.yield %stored : ${scalar(output)}
} -> ${table}
@for b in range(r - 1)
@if known(a)
@let index %shape${b} = ${b == a ? "%results" : size(input, b)}
@else
@let index %shape${b} = %at == ${b} ? %results : ${size(input, b)}
@end
@end
@let index %shape${r - 1} = ${width}
%shape = tensor.from_elements ${["%shape" + b for b in range(r)]} : tensor<${r}xindex>
%output = tensor.reshape %written(%shape) : (${table}, tensor<${r}xindex>) -> ${type(output)}
