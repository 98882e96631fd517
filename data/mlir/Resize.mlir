// Another size by interpolation, one axis after the other. Which elements of the input make one of
// the output, and with which weights, is computed once for each axis, into tables.
@set r = rank(X)
@set mode = attr("mode")
@set how = attr("coordinate_transformation_mode")
@set policy = attr("keep_aspect_ratio_policy")
@set crop = how == "tf_crop_and_resize"
@set list = attr("axes")
@set axes = known(list) and len(list) > 0 ? [a < 0 ? a + r : a for a in list] : range(r)
@set n = len(axes)
@set by_scales = has(scales) and dim(scales, 0) != 0
@set by_sizes = has(sizes) and dim(sizes, 0) != 0
@if by_scales and by_sizes
@refuse "whether scales or sizes are given is known only when it runs"
@end
@set factors = by_scales ? const(scales) : none
@set lengths = by_sizes ? const(sizes) : none
@set corners = crop ? const(roi) : none
@set stretched = by_sizes and policy == "stretch"
@if by_scales
@do check_length(scales, n)
@else
@do check_length(sizes, n)
@end
@if crop
@do check_length(roi, 2 * n)
@end
// What is known of each axis: its sizes and scale as f64, and the part that is cropped.
@for k in range(n)
@set a = axes[k]
@let f64 %in${a} = f64(index ${size(X, a)})
@if by_scales and known(factors)
@let f64 %scale${a} = ${factors[k]}
@elif by_scales
@let index %k${a} = ${k}
%factor${a} = tensor.extract %scales[%k${a}] : ${type(scales)}
@let f64 %scale${a} = f64(f32 %factor${a})
@let i1(f64) %is_scale${a} = %scale${a} > 0 && %scale${a} <= 2147483647
cf.assert %is_scale${a}, "${place()}: a scale is not above 0"
@else
@let index %k${a} = ${k}
%wanted${a} = tensor.extract %sizes[%k${a}] : ${type(sizes)}
@let i1(i64) %is_size${a} = %wanted${a} >= 0
cf.assert %is_size${a}, "${place()}: a size is negative"
@let i1(i64) %is_zero${a} = %wanted${a} == 0
@let i1(f64) %has_elements${a} = %in${a} > 0
%can${a} = arith.ori %is_zero${a}, %has_elements${a} : i1
cf.assert %can${a}, "${place()}: an axis without elements cannot be resized"
@let f64 %each${a} = %in${a} == 0 ? 1 : f64(i64 %wanted${a}) / %in${a}
@end
@if known(corners)
@let f64 %start${a} = ${corners[k]}
@let f64 %end${a} = ${corners[n + k]}
@elif crop
@let index %s${a} = ${k}
@let index %e${a} = ${n + k}
%roi_start${a} = tensor.extract %roi[%s${a}] : ${type(roi)}
%roi_end${a} = tensor.extract %roi[%e${a}] : ${type(roi)}
@let f64 %start${a} = f64(${elem(roi)} %roi_start${a})
@let f64 %end${a} = f64(${elem(roi)} %roi_end${a})
@end
@end
// Sizes give each axis a scale of its own, or all the smallest or the largest of these.
@if by_sizes and not stretched
@let f64 %common0 = ${policy == "not_larger" ? "inf" : "0"}
@for k in range(n)
@let f64 %common${k + 1} = ${policy == "not_larger" ? "min" : "max"}(%common${k}, %each${axes[k]})
@end
@end
@for k in range(n)
@set a = axes[k]
@if by_sizes
@let f64 %scale${a} = ${stretched ? "%each" + a : "%common" + n}
@end
@if known(dim(Y, a))
@let index %out${a} = ${dim(Y, a)}
@elif stretched
@let index %out${a} = index(i64 %wanted${a})
@elif by_sizes
@let f64 %rounded${a} = floor(%scale${a} * %in${a} + 0.5)
@let index %out${a} = index(f64 %rounded${a})
@else
// The product is made in f32, as others make it: 10 times 0.7 is 7.
@let f32 %product${a} = f32(f64 %in${a}) * f32(f64 %scale${a})
@let f64 %cut${a} = %scale${a} == 1 ? %in${a} : f64(f32 %product${a})
@let index %out${a} = index(f64 %cut${a})
@end
@let f64 %width${a} = f64(index %out${a})
@end
// Axes of which every element surely is itself.
@set still = [known(corners) ? corners[k] == 0 and corners[n + k] == 1 : not crop for k in range(n)]
@set one = [by_scales ? known(factors) and factors[k] == 1 : stretched and known(lengths) and lengths[k] == dim(X, axes[k]) for k in range(n)]
@set moved = [axes[k] for k in range(n) if not (one[k] and still[k])]
@if len(moved) == 0
%Y = tensor.cast %X : ${type(X)} to ${type(Y)}
@elif mode == "nearest"
@do resize_nearest(X, Y, moved, [["%in" + a, "%width" + a, "%scale" + a, "%start" + a, "%end" + a, "%out" + a] for a in moved], how)
@else
@do resize_smooth(X, Y, moved, [["%in" + a, "%width" + a, "%scale" + a, "%start" + a, "%end" + a, "%out" + a] for a in moved], how)
@end
