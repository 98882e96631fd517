// Fails where sizes that are known only when it runs do not fit: channels of the image and of the
// weights, and the length of a bias or none.
@macro x, w, bias
@set groups = attr("group")
@do numbers(x)
@set in_channels = numbers[1]
@do numbers(w)
@set out_channels = numbers[0]
@if not (in_channels >= 0 and numbers[1] >= 0 and out_channels >= 0)
@let i1(index) %fits = ${in_channels} == ${numbers[1]} * ${groups} && rem(${out_channels}, ${groups}) == 0
cf.assert %fits, "${place()}: the channels of its input and of its weights do not agree"
@end
@if known(bias)
@if not same(bias, 0, w, 0)
@set n = size(bias, 0)
@let i1(index) %enough = ${n} == ${out_channels}
cf.assert %enough, "${place()}: the bias does not have one number per channel"
@end
@end
