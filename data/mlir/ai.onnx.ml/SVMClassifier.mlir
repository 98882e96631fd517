// One decision for each pair of classes by sums of kernels of a row with support vectors, each a vote; or
// linear forms where there are no vectors.
@set rows = rank(X) == 2 ? dim(X, 0) : 1
@set n = known(rows) ? none : size(X, 0)
@set labels = attr("classlabels_ints")
@set classes = len(labels)
@set rho = attr("rho")
@set coefficients = attr("coefficients")
@set per_class = known(attr("vectors_per_class")) ? attr("vectors_per_class") : []
@set vectors = sum(per_class)
@set how = attr("post_transform")
@set sizes = known(rows) ? [] : [n]
@set I = tensor([rows], "i64")
@if vectors == 0
@do linear_rows(X, rows, n, coefficients, classes, [rho[0]] * classes, "%scores")
@do best_of_rows("%scores", none, rows, n, classes, "%largest")
@if classes == 2
// The second of two classes, whichever is larger, if the larger one is above a threshold.
@set positive = len([c for c in coefficients if not (c >= 0)]) == 0
%best_empty = tensor.empty(${sizes}) : ${I}
%best = linalg.generic {
    indexing_maps = [affine_map<(r) -> (r, 0)>, affine_map<(r) -> (r, 1)>, affine_map<(r) -> (r)>, affine_map<(r) -> (r)>],
    iterator_types = ["parallel"]}
    ins(%scores, %scores, %largest : ${tensor([rows, 2], "f64")}, ${tensor([rows, 2], "f64")}, ${I}) outs(%best_empty : ${I}) {
^bb0(%first: f64, %second: f64, %place: i64, %old: i64):
@let i1(i64) %is_second = %place == 1
@let f64 %most = %is_second ? %second : %first
@let i1(f64) %above = %most ${positive ? ">= 0.5" : "> 0"}
@let i64 %class = %above ? 1 : %place
  linalg.yield %class : i64
} -> ${I}
@else
%best_empty = tensor.empty(${sizes}) : ${I}
%best = linalg.copy ins(%largest : ${I}) outs(%best_empty : ${I}) -> ${I}
@end
@if has(Z)
@do finish_rows("%scores", rows, n, classes, how, none, Z)
@end
@else
@do kernel_rows(X, rows, n, attr("support_vectors"), vectors, attr("kernel_type"), attr("kernel_params"), "%kernels")
@set count = classes * (classes - 1) / 2
@set places = [i for i in range(classes * classes) if i / classes < i % classes]
@set starts = [sum(per_class[0:i]) for i in range(classes)]
@set owners = constant([len([s for s in starts if s <= v]) - 1 for v in range(vectors)], [vectors], "i64")
@set firsts = constant([k / classes for k in places], [count], "i64")
@set seconds = constant([k % classes for k in places], [count], "i64")
@set weights = constant(coefficients, [classes - 1, vectors], "f32")
@set begins = constant(rho[0:count], [count], "f32")
@set P = tensor([rows, count], "f64")
@set C = tensor([count], "i64")
%pairs_empty = tensor.empty(${sizes}) : ${P}
%begun = linalg.generic {
    indexing_maps = [affine_map<(r, p) -> (p)>, affine_map<(r, p) -> (r, p)>], iterator_types = ["parallel", "parallel"]}
    ins(${begins} : ${tensor([count], "f32")}) outs(%pairs_empty : ${P}) {
^bb0(%number: f32, %old: f64):
@let f64 %wide = f64(f32 %number)
  linalg.yield %wide : f64
} -> ${P}
// Of a vector of the first class of a pair the coefficient for the second counts, and the other way round.
%pairs = linalg.generic {
    indexing_maps = [affine_map<(r, p, v) -> (r, v)>, affine_map<(r, p, v) -> (v)>, affine_map<(r, p, v) -> (p)>, affine_map<(r, p, v) -> (p)>, affine_map<(r, p, v) -> (r, p)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%kernels, ${owners}, ${firsts}, ${seconds} : ${tensor([rows, vectors], "f64")}, ${tensor([vectors], "i64")}, ${C}, ${C}) outs(%begun : ${P}) {
^bb0(%kernel: f64, %owner: i64, %first: i64, %second: i64, %sum: f64):
  %at = linalg.index 2 : index
@let i1(i64) %of_first = %owner == %first
@let i1(i64) %of_second = %owner == %second
@let i64 %list = %of_first ? %second - 1 : %of_second ? %first : 0
@let index %line = index(i64 %list)
  %weight = tensor.extract ${weights}[%line, %at] : ${tensor([classes - 1, vectors], "f32")}
@let i1 %counts = or(%of_first, %of_second)
@let f64 %more = %sum + f64(f32 %weight) * %kernel
@let f64 %next = %counts ? %more : %sum
  linalg.yield %next : f64
} -> ${P}
@set V = tensor([rows, classes], "f64")
@let f64 %none = 0
%votes_empty = tensor.empty(${sizes}) : ${V}
%no_votes = linalg.fill ins(%none : f64) outs(%votes_empty : ${V}) -> ${V}
%votes = linalg.generic {
    indexing_maps = [affine_map<(r, c, p) -> (r, p)>, affine_map<(r, c, p) -> (p)>, affine_map<(r, c, p) -> (p)>, affine_map<(r, c, p) -> (r, c)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%pairs, ${firsts}, ${seconds} : ${P}, ${C}, ${C}) outs(%no_votes : ${V}) {
^bb0(%decision: f64, %one: i64, %other: i64, %so_far: f64):
  %class_index = linalg.index 1 : index
@let i64 %class = i64(index %class_index)
@let i1(f64) %is_one = %decision > 0
@let i64 %voted = %is_one ? %one : %other
@let i1(i64) %is_mine = %voted == %class
@let f64 %vote = %is_mine ? 1 : 0
@let f64 %tally = %so_far + %vote
  linalg.yield %tally : f64
} -> ${V}
@do best_of_rows("%votes", none, rows, n, classes, "%best")
@set a = known(attr("prob_a")) ? attr("prob_a") : []
@if has(Z) and len(a) > 0
@if classes > 32
@refuse "probabilities of more than 32 classes are not compiled"
@end
@do couple_pairs("%pairs", rows, n, classes, a, attr("prob_b"), "%chances")
@do finish_rows("%chances", rows, n, classes, how, none, Z)
@elif has(Z) and classes == 2
@do pair_rows("%pairs", rows, n, how, how != "NONE", 0, "%pair", "%above")
@do finish_rows("%pair", rows, n, 2, how == "SOFTMAX" or how == "SOFTMAX_ZERO" ? "NONE" : how, none, Z)
@elif has(Z)
@do finish_rows("%pairs", rows, n, count, how, none, Z)
@end
@end
@if has(Y)
@do label_rows("%best", rows, n, labels, Y)
@end
