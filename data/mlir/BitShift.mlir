// Bits moved left or right. A shift by a negative amount, or by all bits and more, leaves what the
// sign fills in.
@elementwise
@set T = elem(X)
@set S = scalar(X)
@set U = "u" + bits(X)
@set left = attr("direction") == "LEFT"
@let i1(${U}) %inside = %Y < ${bits(X)}
@if left or is_unsigned(X)
@let ${T} %amount = %inside ? %Y : 0
@let ${T} %moved = ${left ? "shl" : "shr"}(%X, %amount)
@let ${T} %Z = %inside ? %moved : 0
@else
@let ${T} %amount = %inside ? %Y : ${bits(X) - 1}
@let ${T} %Z = shr(%X, %amount)
@end
