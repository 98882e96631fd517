// chances, a tensor of f64, = probabilities of classes from decisions between pairs of them (f64), which
// the lists a and b make probabilities of pairs: the p that minimizes the squares of r[j][i] p[i] -
// r[i][j] p[j], found one class after the other ("Probability Estimates for Multi-class Classification
// by Pairwise Coupling" by Wu, Lin and Weng, the second method), as closely as LIBSVM does it.
@macro pairs, rows, n, classes, a, b, chances
@set F = tensor([rows, classes], "f64")
@set count = classes * (classes - 1) / 2
@set P = tensor([rows, count], "f64")
@set all = range(classes)
@set of_i = [i for i in range(classes * classes) if i / classes < i % classes]
@let index %none = 0
@let index %step = 1
@if known(rows)
@let index %rows = ${rows}
@else
@let index %rows = ${n}
@end
%chances_empty = tensor.empty(${known(rows) ? [] : [n]}) : ${F}
${chances} = scf.for %row = %none to %rows step %step iter_args(%so_far = %chances_empty) -> (${F}) {
@for k in range(count)
@set i = of_i[k] / classes
@set j = of_i[k] % classes
@let index %k${k} = ${k}
  %pair${k} = tensor.extract ${pairs}[%row, %k${k}] : ${P}
  %a${k} = arith.constant ${literal(float(a[k]), "f64")} : f64
  %b${k} = arith.constant ${literal(float(b[k]), "f64")} : f64
@let f64 %chance${k} = 1 / (1 + exp(%pair${k} * %a${k} + %b${k}))
@let f64 %r${i * classes + j} = %chance${k} < 1e-7 ? 1e-7 : %chance${k} > 0.9999999 ? 0.9999999 : %chance${k}
@let f64 %r${j * classes + i} = 1 - %r${i * classes + j}
@end
@for i in all
@let f64 %square${i}_0 = 0
@set at = 0
@for j in [k for k in all if k != i]
@let f64 %square${i}_${at + 1} = %square${i}_${at} + %r${j * classes + i} * %r${j * classes + i}
@let f64 %q${i * classes + j} = -%r${j * classes + i} * %r${i * classes + j}
@set at = at + 1
@end
@let f64 %q${i * classes + i} = %square${i}_${at}
@end
@let f64 %even = ${1.0 / classes}
@let i1 %not_yet = false
  %end:${classes + 2} = scf.while (%round = %none, %is_done = %not_yet${join([", %p" + i + " = %even" for i in all], "")}) : (index, i1${join([", f64" for i in all], "")}) -> (index, i1${join([", f64" for i in all], "")}) {
@let i1(index) %more = %round < ${max(classes, 100)}
@let i1 %undone = xor(%is_done, true)
@let i1 %goes_on = and(%more, %undone)
    scf.condition(%goes_on) %round, %is_done${join([", %p" + i for i in all], "")} : index, i1${join([", f64" for i in all], "")}
  } do {
  ^bb0(%now: index, %was_done: i1${join([", %c" + i + ": f64" for i in all], "")}):
@let f64 %whole_0 = 0
@for i in all
@let f64 %qp${i}_0 = 0
@for j in all
@let f64 %qp${i}_${j + 1} = %qp${i}_${j} + %q${i * classes + j} * %c${j}
@end
@let f64 %whole_${i + 1} = %whole_${i} + %c${i} * %qp${i}_${classes}
@end
@let f64 %worst_0 = 0
@for i in all
@let f64 %off_${i} = abs(%qp${i}_${classes} - %whole_${classes})
@let f64 %worst_${i + 1} = %off_${i} > %worst_${i} ? %off_${i} : %worst_${i}
@end
@let i1(f64) %close = %worst_${classes} < ${0.005 / classes}
@let f64 %w_0 = %whole_${classes} + 0
@for i in all
@let f64 %g${i}_0 = %qp${i}_${classes} + 0
@let f64 %n${i}_0 = %c${i} + 0
@end
@for i in all
@let f64 %step_${i} = (%w_${i} - %g${i}_${i}) / %q${i * classes + i}
@let f64 %scale_${i} = 1 + %step_${i}
@let f64 %w_${i + 1} = (%w_${i} + %step_${i} * (%step_${i} * %q${i * classes + i} + 2 * %g${i}_${i})) / (%scale_${i} * %scale_${i})
@for j in all
@let f64 %g${j}_${i + 1} = (%g${j}_${i} + %step_${i} * %q${i * classes + j}) / %scale_${i}
@if j == i
@let f64 %n${j}_${i + 1} = (%n${j}_${i} + %step_${i}) / %scale_${i}
@else
@let f64 %n${j}_${i + 1} = %n${j}_${i} / %scale_${i}
@end
@end
@end
@for i in all
@let f64 %next${i} = %close ? %c${i} : %n${i}_${classes}
@end
@let index %later = %now + 1
    scf.yield %later, %close${join([", %next" + i for i in all], "")} : index, i1${join([", f64" for i in all], "")}
  }
@for i in all
@let index %column${i} = ${i}
  %kept${i} = tensor.insert %end#${i + 2} into ${i == 0 ? "%so_far" : "%kept" + (i - 1)}[%row, %column${i}] : ${F}
@end
  scf.yield %kept${classes - 1} : ${F}
}
