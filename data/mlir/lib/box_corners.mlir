// f32 `to`0 to `to`3: the low and high x and the low and high y of a box, one of boxes[sample]. It is
// given by two opposite corners (y, x, y, x) or by its center and extent (x, y, width, height).
@macro boxes, sample, box, by_center, to
@for k in range(4)
%k${k} = arith.constant ${k} : index
%b${k} = tensor.extract ${boxes}[${sample}, ${box}, %k${k}] : ${type(boxes)}
@end
@if by_center
@let f32 ${to}0 = %b0 - %b2 / 2
@let f32 ${to}1 = %b0 + %b2 / 2
@let f32 ${to}2 = %b1 - %b3 / 2
@let f32 ${to}3 = %b1 + %b3 / 2
@else
@let f32 ${to}0 = %b1 < %b3 ? %b1 : %b3
@let f32 ${to}1 = %b1 < %b3 ? %b3 : %b1
@let f32 ${to}2 = %b0 < %b2 ? %b0 : %b2
@let f32 ${to}3 = %b0 < %b2 ? %b2 : %b0
@end
