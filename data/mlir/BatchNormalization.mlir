// Each channel less its mean, times scale / sqrt(variance + epsilon), plus B: by given statistics,
// or in training by those of the batch, with which the given ones are then brought up to date.
@set T = elem(X)
@set W = T == "f64" or elem(scale) == "f64" or elem(input_mean) == "f64" ? "f64" : "f32"
@set r = rank(X)
@set training = attr("training_mode") != 0
@do numbers(X)
@set all = ["d" + i for i in range(r)]
@set by = r > 1 ? "d1" : "0"
@set channels = r > 1 ? numbers[1] : 1
@set line = tensor([channels >= 0 ? channels : none], W)
@set unknown = [c for c in [channels] if not (c >= 0)]
@for p in [scale, B, input_mean, input_var]
@if r > 1
@do check_same(p, 0, X, 1)
@else
@do check_length(p, 1)
@end
@end
@set mean = input_mean
@set variance = input_var
@set S = elem(input_mean)
@if training
@do batch_statistics(X, W, channels)
@set mean = statistics[0]
@set variance = statistics[1]
@end
// Two results, of which one is the mean again: what computes a root is not to be repeated for
// every element.
%line_a = tensor.empty(${unknown}) : ${line}
%line_b = tensor.empty(${unknown}) : ${line}
@set M = training ? W : S
@set M_type = training ? line : type(input_mean)
%known:2 = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]}
    ins(${mean}, ${variance}, %scale : ${M_type}, ${training ? line : type(input_var)}, ${type(scale)})
    outs(%line_a, %line_b : ${line}, ${line}) {
^bb0(%m: ${bare(M)}, %v: ${bare(training ? W : elem(input_var))}, %s: ${scalar(scale)}, %old_a: ${W}, %old_b: ${W}):
@let ${W} %mean_wide = ${W}(${M} %m)
@let ${W} %variance_wide = ${W}(${training ? W : elem(input_var)} %v)
@let ${W} %scale_wide = ${W}(${elem(scale)} %s)
@let ${W} %factor = %scale_wide / sqrt(%variance_wide + ${attr("epsilon")})
  linalg.yield %mean_wide, %factor : ${W}, ${W}
} -> (${line}, ${line})
%empty = tensor.empty(${unknown_sizes(X)}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${by})>, affine_map<(${all}) -> (${by})>, affine_map<(${all}) -> (${by})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%X, %known#0, %known#1, %B : ${type(X)}, ${line}, ${line}, ${type(B)}) outs(%empty : ${type(Y)}) {
^bb0(%x: ${scalar(X)}, %m: ${W}, %f: ${W}, %b: ${scalar(B)}, %old: ${scalar(Y)}):
@let ${W} %wide = ${W}(${T} %x)
@let ${W} %shift = ${W}(${elem(B)} %b)
@let ${W} %y = (%wide - %m) * %f + %shift
@let ${T} %less = ${T}(${W} %y)
  linalg.yield %less : ${scalar(Y)}
} -> ${type(Y)}
@if training
@if has(running_mean)
@do running_statistics(input_mean, statistics[0], line, W, running_mean)
@end
@if has(running_var)
@do running_statistics(input_var, statistics[1], line, W, running_var)
@end
@end
