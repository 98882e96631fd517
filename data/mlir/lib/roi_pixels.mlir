// The two pixels beside a sample of RoiAlign, how far it is from the first, and whether it is inside.
@macro start, step, sample, length, low, high, t, inside
@let f64 %v = ${start} + (f64(index ${sample}) + 0.5) * ${step}
@let i1(f64) ${inside} = %v >= -1 && %v <= ${length}
@let f64 %last = ${length} - 1
@let f64 %up = %v > 0 ? %v : 0
@let f64 %at = %up < %last ? %up : %last
@let f64 %below = floor(%at)
@let f64 ${t} = %at - %below
@let index ${low} = index(f64 %below)
@let index ${high} = min(${low} + 1, index(f64 %last))
