// RoiAlign along one axis: where the samples of a cell begin, how far apart and how many they are,
// and which of them may be inside the image: the others need not be looked at, however many there
// are. Rois are rows of x1, y1, x2, y2; axis 0 is y.
@macro rois, roi, axis, cell, cells, length, start, step, samples, from, to
@let index %low = ${1 - axis}
@let index %high = ${3 - axis}
@set half = attr("coordinate_transformation_mode") == "half_pixel"
@set R = elem(rois)
  %a = tensor.extract ${rois}[${roi}, %low] : ${type(rois)}
  %b = tensor.extract ${rois}[${roi}, %high] : ${type(rois)}
@let f64 %scale = ${attr("spatial_scale")}
@let f64 %first = f64(${R} %a) * %scale - ${half ? "0.5" : "0"}
@let f64 %span = f64(${R} %b) * %scale - ${half ? "0.5" : "0"} - %first
@if half
@let f64 %size = %span
@else
@let f64 %size = %span > 1 ? %span : 1
@end
@let f64 %bin = %size / ${cells}
@if attr("sampling_ratio") > 0
@let f64 ${samples} = ${attr("sampling_ratio")}
@else
@let f64 %natural = ceil(%bin)
@let f64 ${samples} = %natural > 0 ? min(%natural, 9007199254740992) : 0
@end
@let f64 ${step} = %bin / ${samples}
@let f64 ${start} = %first + f64(index ${cell}) * %bin
@let f64 %begin = ${start} + 0.5 * ${step}
@let i1(f64) %is_finite = abs(%begin) < inf && abs(${step}) < inf && ${samples} >= 1
@let f64 %p = (-1 - %begin) / ${step}
@let f64 %q = (${length} - %begin) / ${step}
@let f64 %r = %p < %q ? %p : %q
@let f64 %s = %p < %q ? %q : %p
@let f64 %u = ${step} == 0 ? 0 : max(min(ceil(%r) - 1, ${samples}), 0)
@let f64 %v = ${step} == 0 ? ${samples} : max(min(floor(%s) + 2, ${samples}), 0)
@let f64 %zero = 0
  %x = arith.select %is_finite, %u, %zero : f64
  %y = arith.select %is_finite, %v, %zero : f64
@let index ${from} = index(f64 %x)
@let index ${to} = index(f64 %y)
