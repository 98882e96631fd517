// Of boxes that overlap, the one with the best score, for each sample and class: rows of sample, class
// and box. Boxes come in the order of their scores, and each is taken unless it overlaps one that was.
@set center = attr("center_point_box") != 0
@do check_same(boxes, 0, scores, 0)
@do check_same(boxes, 1, scores, 2)
@if not known(dim(boxes, 2))
@let i1(index) %four = ${size(boxes, 2)} == 4
cf.assert %four, "${place()}: a box is not of four numbers"
@end
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
@set n = size(scores, 2)
@set N = dim(scores, 2)
@if has(max_output_boxes_per_class)
@do check_length(max_output_boxes_per_class, 1)
%asked = tensor.extract %max_output_boxes_per_class[${["%c0" for i in range(rank(max_output_boxes_per_class))]}] : ${type(max_output_boxes_per_class)}
@let i64 %at_most = min(max(%asked, 0), i64(index ${n}))
@let index %most = index(i64 %at_most)
@else
@let index %most = 0
@end
@if has(iou_threshold)
@do check_length(iou_threshold, 1)
%iou = tensor.extract %iou_threshold[${["%c0" for i in range(rank(iou_threshold))]}] : ${type(iou_threshold)}
@else
@let f32 %iou = 0
@end
@if has(score_threshold)
@do check_length(score_threshold, 1)
%least = tensor.extract %score_threshold[${["%c0" for i in range(rank(score_threshold))]}] : ${type(score_threshold)}
@end
@let index %samples = %most > 0 ? ${size(scores, 0)} : 0
@let index %rows = %samples * ${size(scores, 1)} * %most
@set T = tensor([none, 3], "i64")
@set row = tensor([1, N], "i32")
%results = tensor.empty(%rows) : ${T}
%u0:2 = scf.for %s = %c0 to %samples step %c1 iter_args(%t0 = %results, %n0 = %c0) -> (${T}, index) {
  %u1:2 = scf.for %c = %c0 to ${size(scores, 1)} step %c1 iter_args(%t1 = %t0, %n1 = %n0) -> (${T}, index) {
    %room = tensor.empty(${known(N) ? "" : n}) : ${row}
    %keys = linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
        outs(%room : ${row}) {
    ^bb0(%old: i32):
      %at = linalg.index 1 : index
      %score = tensor.extract %scores[%s, %c, %at] : ${type(scores)}
@do order_key("%score", "f32", "least", "%key")
@let i32 %turned = xor(%key, -1)
      linalg.yield %turned : i32
    } -> ${row}
@do sorted("%keys", 1, N, "%c1", n, "i32", "%order")
    %u2:2 = scf.for %p = %c0 to ${n} step %c1 iter_args(%t2 = %t1, %n2 = %n1) -> (${T}, index) {
      %box = tensor.extract %order[%p] : ${tensor([N], "index")}
      %its_score = tensor.extract %scores[%s, %c, %box] : ${type(scores)}
@let i1(f32) %good = ${has(score_threshold) ? "%its_score > %least" : "true"}
@let index %chosen = %n2 - %n1
@let i1(index) %has_room = %chosen < %most
@let i1 %asks = %good && %has_room
@let index %others = %asks ? %chosen : 0
@do box_corners(boxes, "%s", "%box", center, "%a")
      %alone = scf.for %k = %c0 to %others step %c1 iter_args(%so_far = %asks) -> (i1) {
@let index %taken = %n1 + %k
        %other_raw = tensor.extract %t2[%taken, %c2] : ${T}
@let index %other = index(i64 %other_raw)
@do box_corners(boxes, "%s", "%other", center, "%b")
@let f32 %x_low = %a0 > %b0 ? %a0 : %b0
@let f32 %x_high = %a1 < %b1 ? %a1 : %b1
@let f32 %y_low = %a2 > %b2 ? %a2 : %b2
@let f32 %y_high = %a3 < %b3 ? %a3 : %b3
@let f32 %inside = (%x_high - %x_low) * (%y_high - %y_low)
@let f32 %area_a = (%a1 - %a0) * (%a3 - %a2)
@let f32 %area_b = (%b1 - %b0) * (%b3 - %b2)
@let f32 %both_areas = %area_a + %area_b - %inside
@let i1(f32) %touch = %x_high > %x_low && %y_high > %y_low
@let i1(f32) %real = %area_a > 0 && %area_b > 0 && %both_areas > 0
@let i1(f32) %much = %inside / %both_areas > %iou
@let i1 %overlaps = %touch && %real && %much
@let i1 %still = %so_far && !%overlaps
        scf.yield %still : i1
      }
      %u3:2 = scf.if %alone -> (${T}, index) {
@let i64 %sample_number = i64(index %s)
@let i64 %class_number = i64(index %c)
@let i64 %box_number = i64(index %box)
        %r0 = tensor.insert %sample_number into %t2[%n2, %c0] : ${T}
        %r1 = tensor.insert %class_number into %r0[%n2, %c1] : ${T}
        %r2 = tensor.insert %box_number into %r1[%n2, %c2] : ${T}
@let index %n3 = %n2 + 1
        scf.yield %r2, %n3 : ${T}, index
      } else {
        scf.yield %t2, %n2 : ${T}, index
      }
      scf.yield %u3#0, %u3#1 : ${T}, index
    }
    scf.yield %u2#0, %u2#1 : ${T}, index
  }
  scf.yield %u1#0, %u1#1 : ${T}, index
}
@if known(dim(selected_indices, 0))
@let i1(index) %fits = %u0#1 == ${dim(selected_indices, 0)}
cf.assert %fits, "${place()}: it finds another number of boxes than the model says"
@end
%found = tensor.extract_slice %u0#0[0, 0] [%u0#1, 3] [1, 1] : ${T} to ${T}
%selected_indices = tensor.cast %found : ${T} to ${type(selected_indices)}
