// The coordinate of element `at` (an index) along an axis of Resize, held near the input so that it
// fits in an integer, and whether it is outside, where it is extrapolated. The operands are
// the names that Resize.mlir gives to what is known of an axis.
@macro how, at, in, out, scale, start, end, near, outside
@let f64 %place = f64(index ${at})
@do resize_coordinate(how, "%place", in, out, scale, start, end, "%exact")
@if how == "tf_crop_and_resize"
@let i1(f64) %inside = %exact >= 0 && %exact <= ${in} - 1
  %yes = arith.constant true
  ${outside} = arith.xori %inside, %yes : i1
@end
@let f64 %most = ${in} + 1
@let f64 ${near} = %exact > %most ? %most : %exact >= -2 ? %exact : -2
