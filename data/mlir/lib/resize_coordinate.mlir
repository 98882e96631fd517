// to = the coordinate in the input, an f64, of an element of the output: place, and the sizes in
// and out of the axis are f64 too, and so is the scale. The width of the output is what the scale
// makes it, not rounded down to elements.
@macro how, place, in, out, scale, start, end, to
@if how == "half_pixel_symmetric"
@let f64 ${to} = ${in} / 2 * (1 - ${out} / (${scale} * ${in})) + (${place} + 0.5) / ${scale} - 0.5
@elif how == "pytorch_half_pixel"
@let f64 ${to} = ${out} <= 1 ? 0 : (${place} + 0.5) / ${scale} - 0.5
@elif how == "align_corners"
@let f64 %width = ${scale} * ${in}
@let f64 ${to} = %width == 1 ? 0 : ${place} * (${in} - 1) / (%width - 1)
@elif how == "asymmetric"
@let f64 ${to} = ${place} / ${scale}
@elif how == "tf_half_pixel_for_nn"
@let f64 ${to} = (${place} + 0.5) / ${scale}
@elif how == "tf_crop_and_resize"
@let f64 %width = ${scale} * ${in}
@let f64 %range = (${end} - ${start}) * (${in} - 1)
@let f64 %within = %width == 1 ? %range / 2 : ${place} * %range / (%width - 1)
@let f64 ${to} = %within + ${start} * (${in} - 1)
@else
@let f64 ${to} = (${place} + 0.5) / ${scale} - 0.5
@end
