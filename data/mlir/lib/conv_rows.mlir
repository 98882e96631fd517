// A convolution of few channels at a time, such as each channel by itself: rows of the result, in
// pieces of `width` elements; the last piece of a row overlaps the one before it. taps: where the
// elements that meet the k weights of a channel lie.
@macro T, width, groups, in_channels, out_channels, batch, plane, steps, strides, counts, taps, k, x, w, y, bias
@set r = len(counts)
@set V = width == 1 ? bare(T) : "vector<" + width + "x" + bare(T) + ">"
@set row = memref([none], T)
@set is_float = T == "f32" or T == "f64"
@let index %zero = 0
@let index %one = 1
@let index %k = ${k}
@let index %batch = ${batch}
@let index %channels = ${out_channels}
@let index %each = %channels / ${groups}
@let index %width = ${width}
@let index %line = ${counts[r - 1]}
@set few = width == 1 ? literal(0, T) : "dense<" + literal(0, T) + ">"
%none = arith.constant ${few} : ${V}
@if width > 1 and strides[r - 1] > 2
%offsets = arith.constant dense<[${[i * strides[r - 1] for i in range(width)]}]> : vector<${width}xindex>
%mask = arith.constant dense<true> : vector<${width}xi1>
@end
@for i in range(r - 1)
@let index %size${i} = ${counts[i]}
@end
scf.for %image = %zero to %batch step %one {
scf.for %channel = %zero to %channels step %one {
@let index %group = %channel / %each
@let index %x_at = (%image * ${groups} + %group) * ${in_channels} * ${plane}
@let index %w_at = %channel * %k
@let index %number = %image * %channels + %channel
@if known(bias)
  %in_b = memref.load ${bias}[%channel] : ${row}
@if width > 1
  %begun = vector.broadcast %in_b : ${bare(T)} to ${V}
@end
@end
@set begun = known(bias) ? (width > 1 ? "%begun" : "%in_b") : "%none"
@set from = "%x_at"
@set number = "%number"
@for i in range(r - 1)
scf.for %o${i} = %zero to %size${i} step %one {
@let index %from${i} = ${from} + %o${i} * ${strides[i]} * ${steps[i]}
@let index %number${i} = ${number} * %size${i} + %o${i}
@set from = "%from" + i
@set number = "%number" + i
@end
@let index %y_at = ${number} * %line
  scf.for %j = %zero to %line step %width {
@let index %first = min(%j, %line - %width)
@let index %start = ${from} + %first * ${strides[r - 1]}
    %sum = scf.for %p = %zero to %k step %one iter_args(%so_far = ${begun}) -> (${V}) {
      %tap = memref.load ${taps}[%p] : memref<?xindex>
@let index %at = %start + %tap
@let index %weight_at = %w_at + %p
      %weight = memref.load ${w}[%weight_at] : ${row}
@if width == 1
      %element = memref.load ${x}[%at] : ${row}
@set weight = "%weight"
@else
@if strides[r - 1] == 1
      %element = vector.load ${x}[%at] : ${row}, ${V}
@elif strides[r - 1] == 2
// Every other element of two pieces, which overlap so that nothing behind the last one is read.
@let index %at_more = %at + ${width - 1}
      %piece = vector.load ${x}[%at] : ${row}, ${V}
      %piece_more = vector.load ${x}[%at_more] : ${row}, ${V}
      %element = vector.shuffle %piece, %piece_more [${[i * 2 < width ? i * 2 : i * 2 + 1 for i in range(width)]}] : ${V}, ${V}
@else
      %element = vector.gather ${x}[%at] [%offsets], %mask, %none : ${row}, vector<${width}xindex>, vector<${width}xi1>, ${V} into ${V}
@end
      %weights = vector.broadcast %weight : ${bare(T)} to ${V}
@set weight = "%weights"
@end
@if is_float
      %term = arith.mulf ${weight}, %element fastmath<contract> : ${V}
      %next = arith.addf %so_far, %term fastmath<contract> : ${V}
@else
      %term = arith.muli ${weight}, %element : ${V}
      %next = arith.addi %so_far, %term : ${V}
@end
      scf.yield %next : ${V}
    }
@let index %to = %y_at + %first
@if width == 1
    memref.store %sum, ${y}[%to] : ${row}
@else
    vector.store %sum, ${y}[%to] : ${row}, ${V}
@end
  }
@for i in range(r - 1)
}
@end
}
}
