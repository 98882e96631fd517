// Y = X by sums of weighted neighbours, one axis after the other: growing axes from the last on,
// while there are few rows, others from the first on.
@macro X, Y, moved, facts, how
@set r = rank(X)
@set m = len(moved)
@set grows = not (1 in [dim(Y, a) < dim(X, a) for a in moved])
@set order = grows ? [m - 1 - k for k in range(m)] : range(m)
@set E = elem(X)
// Sums are in f64 where the elements need it, f32 otherwise.
@set T = E in ["f16", "bf16", "f32"] ? "f32" : "f64"
@if not (E in ["f16", "bf16", "f32", "f64", "i1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@refuse "elements of type " + E + " are not interpolated"
@end
@set from = X
@set F = E
@set now = dims(X)
@set lengths = [known(now[b]) ? none : size(X, b) for b in range(r)]
@for step in range(m)
@set a = moved[order[step]]
@set last = step == m - 1
@set G = last ? E : T
@set next = [b == a ? dim(Y, a) : now[b] for b in range(r)]
@set after = [b == a ? (known(dim(Y, a)) ? none : facts[order[step]][5]) : lengths[b] for b in range(r)]
@set to = last ? Y : "%pass" + step
@if attr("antialias") != 0
@do resize_filtered(from, tensor(now, F), F, T, G, next, after, a, facts[order[step]], how, to)
@else
@do resize_taps(from, tensor(now, F), F, T, G, next, after, a, facts[order[step]], how, to)
@end
@set from = to
@set F = G
@set now = next
@set lengths = after
@end
