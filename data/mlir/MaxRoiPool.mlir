// The largest pixel of each cell of regions of images; a cell without pixels is zero.
@let index %zero = 0
@let index %one = 1
@if dim(rois, 1) != 5
@let i1(index) %is_region = ${size(rois, 1)} == 5
cf.assert %is_region, "${place()}: its regions are not rows of 5 numbers"
@end
@let index %regions = ${size(rois, 0)}
@let f64 %images = f64(index ${size(X, 0)})
scf.for %i = %zero to %regions step %one {
  %belongs = tensor.extract %rois[%i, %zero] : ${type(rois)}
@let f64 %number = f64(${elem(rois)} %belongs)
@let i1(f64) %exists = %number > -1 && %number < %images
  cf.assert %exists, "${place()}: a region belongs to an image that is not there"
}
@set unknown = [a == 0 ? "%regions" : size(X, 1) for a in range(2) if not known(dim(Y, a))]
%empty = tensor.empty(${unknown}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    outs(%empty : ${type(Y)}) {
^bb0(%old: ${scalar(Y)}):
  %roi = linalg.index 0 : index
  %channel = linalg.index 1 : index
  %cell_y = linalg.index 2 : index
  %cell_x = linalg.index 3 : index
  %belongs = tensor.extract %rois[%roi, %zero] : ${type(rois)}
@let index %image = index(${elem(rois)} %belongs)
@set cells = attr("pooled_shape")
@do roi_span(rois, "%roi", 0, "%cell_y", cells[0], size(X, 2), "%from_y", "%to_y")
@do roi_span(rois, "%roi", 1, "%cell_x", cells[1], size(X, 3), "%from_x", "%to_x")
@set E = elem(X)
@let ${E} %least = least
@let ${E} %none = 0
  %peak = scf.for %y = %from_y to %to_y step %one iter_args(%outer = %least) -> (${scalar(X)}) {
    %row = scf.for %x = %from_x to %to_x step %one iter_args(%so_far = %outer) -> (${scalar(X)}) {
      %e = tensor.extract %X[%image, %channel, %y, %x] : ${type(X)}
@let ${E} %more = max(%so_far, %e)
      scf.yield %more : ${scalar(X)}
    }
    scf.yield %row : ${scalar(X)}
  }
@let i1(index) %covered = %from_y < %to_y && %from_x < %to_x
  %value = arith.select %covered, %peak, %none : ${scalar(X)}
  linalg.yield %value : ${scalar(Y)}
} -> ${type(Y)}
