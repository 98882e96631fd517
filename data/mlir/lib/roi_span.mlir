// MaxRoiPool along one axis: the pixels from..to that a cell covers. Rois are rows of image, x1, y1,
// x2, y2; axis 0 is y.
@macro rois, roi, axis, cell, cells, length, from, to
@let index %low = ${2 - axis}
@let index %high = ${4 - axis}
@set R = elem(rois)
  %a = tensor.extract ${rois}[${roi}, %low] : ${type(rois)}
  %b = tensor.extract ${rois}[${roi}, %high] : ${type(rois)}
@let f64 %scale = ${attr("spatial_scale")}
@let f64 %scaled_low = f64(${R} %a) * %scale
@let f64 %scaled_high = f64(${R} %b) * %scale
@do round_away("%scaled_low", "%start")
@do round_away("%scaled_high", "%end")
@let f64 %span = %end - %start + 1
@let f64 %size = %span > 1 ? %span : 1
@let f64 %bin = %size / ${cells}
@let f64 %c = f64(index ${cell})
@let f64 %p = floor(%c * %bin) + %start
@let f64 %q = ceil((%c + 1) * %bin) + %start
@let f64 %length = f64(index ${length})
@let f64 %u = %p > 0 ? %p : 0
@let f64 %v = %q > 0 ? %q : 0
@let f64 %s = %u < %length ? %u : %length
@let f64 %t = %v < %length ? %v : %length
@let index ${from} = index(f64 %s)
@let index ${to} = index(f64 %t)
