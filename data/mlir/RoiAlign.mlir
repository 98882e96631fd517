// Regions of images brought to one size: each cell is the mean of samples between pixels, or the
// largest of the weighted pixels themselves, as ONNX has it.
@set largest = attr("mode") == "max"
@let index %zero = 0
@let index %one = 1
@let f64 %height = f64(index ${size(X, 2)})
@let f64 %width = f64(index ${size(X, 3)})
@if dim(rois, 1) != 4
@let i1(index) %is_region = ${size(rois, 1)} == 4
cf.assert %is_region, "${place()}: its regions are not rows of 4 numbers"
@end
@let index %regions = ${size(rois, 0)}
@let i1(index) %equal = %regions == ${size(batch_indices, 0)}
cf.assert %equal, "${place()}: there are not as many images as regions"
@let index %pixels = ${size(X, 2)} * ${size(X, 3)}
@let index %results = %regions * ${size(X, 1)}
@let i1(index) %readable = %pixels > 0 || %results == 0
cf.assert %readable, "${place()}: there is no pixel to read"
scf.for %i = %zero to %regions step %one {
  %belongs = tensor.extract %batch_indices[%i] : ${type(batch_indices)}
@let index %number = index(${elem(batch_indices)} %belongs)
@let i1(index) %exists = %number >= 0 && %number < ${size(X, 0)}
  cf.assert %exists, "${place()}: a region belongs to an image that is not there"
}
@set unknown = [a == 0 ? "%regions" : size(X, 1) for a in range(2) if not known(dim(Y, a))]
%empty = tensor.empty(${unknown}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%batch_indices : ${type(batch_indices)}) outs(%empty : ${type(Y)}) {
^bb0(%belongs: ${scalar(batch_indices)}, %old: ${scalar(Y)}):
@let index %image = index(${elem(batch_indices)} %belongs)
  %roi = linalg.index 0 : index
  %channel = linalg.index 1 : index
  %cell_y = linalg.index 2 : index
  %cell_x = linalg.index 3 : index
@do roi_extent(rois, "%roi", 0, "%cell_y", attr("output_height"), "%height", "%start_y", "%step_y", "%samples_y", "%from_y", "%to_y")
@do roi_extent(rois, "%roi", 1, "%cell_x", attr("output_width"), "%width", "%start_x", "%step_x", "%samples_x", "%from_x", "%to_x")
@let f64 %all = %samples_y * %samples_x
@let f64 %begin = ${largest ? "least" : "0"}
@let f64 %none = 0
  %sum:2 = scf.for %y = %from_y to %to_y step %one iter_args(%outer = %begin, %seen_outer = %none) -> (f64, f64) {
@do roi_pixels("%start_y", "%step_y", "%y", "%height", "%low_y", "%high_y", "%t_y", "%inside_y")
    %row:2 = scf.for %x = %from_x to %to_x step %one iter_args(%so_far = %outer, %seen = %seen_outer) -> (f64, f64) {
@do roi_pixels("%start_x", "%step_x", "%x", "%width", "%low_x", "%high_x", "%t_x", "%inside_x")
      %inside = arith.andi %inside_y, %inside_x : i1
@for corner in range(4)
      %e${corner} = tensor.extract %X[%image, %channel, ${corner / 2 == 1 ? "%high_y" : "%low_y"}, ${corner % 2 == 1 ? "%high_x" : "%low_x"}] : ${type(X)}
@let f64 %w${corner} = ${corner / 2 == 1 ? "%t_y" : "(1 - " + "%t_y" + ")"} * ${corner % 2 == 1 ? "%t_x" : "(1 - " + "%t_x" + ")"} * f64(${elem(X)} %e${corner})
@end
@if largest
@let f64 %m0 = %w0 > %so_far ? %w0 : %so_far
@let f64 %m1 = %w1 > %m0 ? %w1 : %m0
@let f64 %m2 = %w2 > %m1 ? %w2 : %m1
@let f64 %more = %w3 > %m2 ? %w3 : %m2
@else
@let f64 %more = %so_far + (%w0 + %w1 + %w2 + %w3)
@end
@let f64 %counted = %seen + 1
      %next = arith.select %inside, %more, %so_far : f64
      %next_seen = arith.select %inside, %counted, %seen : f64
      scf.yield %next, %next_seen : f64, f64
    }
    scf.yield %row#0, %row#1 : f64, f64
  }
@if largest
// A sample outside is a zero, and so is a cell without samples.
@let f64 %or_zero = %sum#0 > 0 ? %sum#0 : 0
@let i1(f64) %whole = %sum#1 == %all && %all > 0
  %value = arith.select %whole, %sum#0, %or_zero : f64
@else
@let f64 %divisor = %all > 1 ? %all : 1
@let f64 %value = %sum#0 / %divisor
@end
@let ${elem(Y)} %stored = ${elem(Y)}(f64 %value)
  linalg.yield %stored : ${scalar(Y)}
} -> ${type(Y)}
