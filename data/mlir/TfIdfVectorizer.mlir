// How often runs of tokens from a list occur in each row, tokens of a run being up to some distance
// apart. Tokens are numbers: strings are not compiled.
@set r = rank(X)
@set starts = attr("ngram_counts")
@set places = attr("ngram_indexes")
@set pool = known(attr("pool_int64s")) ? attr("pool_int64s") : []
@set weights = known(attr("weights")) ? attr("weights") : []
@set mode = attr("mode")
@let index %zero = 0
@let index %one = 1
@let index %rows = ${r == 2 ? size(X, 0) : 1}
@let index %width = ${r == 0 ? 1 : size(X, r - 1)}
@let f32 %none = 0
%empty = tensor.empty(${[size(X, 0) for a in range(rank(Y)) if not known(dim(Y, a))]}) : ${type(Y)}
%clear = linalg.fill ins(%none : f32) outs(%empty : ${type(Y)}) -> ${type(Y)}
@set counts = "%clear"
@set first = 0
@for level in range(len(starts))
@set length = level + 1
@set end = level + 1 < len(starts) ? starts[level + 1] : len(pool)
@if starts[level] < 0 or end < starts[level] or end > len(pool)
@refuse "attribute 'ngram_counts' does not fit its pool"
@end
@set count = (end - starts[level]) / length
@if first + count > len(places)
@refuse "there are fewer ngram_indexes than runs of tokens"
@end
@if count > 0 and length >= attr("min_gram_length") and length <= attr("max_gram_length")
@set grams = constant(pool[starts[level]:starts[level] + count * length], [count, length], "i64")
@set columns = constant(places[first:first + count], [count], "i64")
// Single tokens have no distance: once is enough.
@if length == 1
@let index %most${level} = 1
@else
@let index %longest${level} = (%width - 1) / ${length - 1}
@let index %most${level} = min(%longest${level}, ${min(attr("max_skip_count"), 2147483646) + 1})
@end
@let index %count${level} = ${count}
@let index %last${level} = %most${level} + 1
%found${level} = scf.for %row = %zero to %rows step %one iter_args(%by_row = ${counts}) -> (${type(Y)}) {
  %all_distances = scf.for %distance = %one to %last${level} step %one iter_args(%by_distance = %by_row) -> (${type(Y)}) {
@let index %begins = %width - %distance * ${length - 1}
    %all_begins = scf.for %begin = %zero to %begins step %one iter_args(%by_begin = %by_distance) -> (${type(Y)}) {
@for k in range(length)
@let index %at${k} = %begin + %distance * ${k}
      %token${k} = tensor.extract %X[${r == 2 ? ["%row", "%at" + k] : r == 1 ? ["%at" + k] : []}] : ${type(X)}
@let i64 %wide${k} = i64(${elem(X)} %token${k})
@end
      %all_grams = scf.for %gram = %zero to %count${level} step %one iter_args(%by_gram = %by_begin) -> (${type(Y)}) {
        %yes = arith.constant true
@for k in range(length)
@let index %k${k} = ${k}
        %listed${k} = tensor.extract ${grams}[%gram, %k${k}] : tensor<${count}x${length}xi64>
@let i1(i64) %same${k} = %wide${k} == %listed${k}
        %so_far${k} = arith.andi ${k == 0 ? "%yes" : "%so_far" + (k - 1)}, %same${k} : i1
@end
        %place = tensor.extract ${columns}[%gram] : tensor<${count}xi64>
@let index %column = index(i64 %place)
@set cell = rank(Y) == 2 ? ["%row", "%column"] : ["%column"]
        %before = tensor.extract %by_gram[${cell}] : ${type(Y)}
@let f32 %after = %before + f32(i1 %so_far${length - 1})
        %counted = tensor.insert %after into %by_gram[${cell}] : ${type(Y)}
        scf.yield %counted : ${type(Y)}
      }
      scf.yield %all_grams : ${type(Y)}
    }
    scf.yield %all_begins : ${type(Y)}
  }
  scf.yield %all_distances : ${type(Y)}
}
@set counts = "%found" + level
@end
@set first = first + count
@end
@set weighted = mode != "TF" and len(weights) > 0
@set last = dim(Y, rank(Y) - 1)
@set factors = weighted ? constant([i < len(weights) ? weights[i] : 1.0 for i in range(last)], [last], "f32") : none
@set same = rank(Y) == 2 ? "affine_map<(d0, d1) -> (d0, d1)>" : "affine_map<(d0) -> (d0)>"
@set by_column = rank(Y) == 2 ? "affine_map<(d0, d1) -> (d1)>" : "affine_map<(d0) -> (d0)>"
%Y = linalg.generic {indexing_maps = [${weighted ? [same, by_column, same] : [same, same]}], iterator_types = [${[quote("parallel") for a in range(rank(Y))]}]}
    ins(${weighted ? [counts, factors] : [counts]} : ${weighted ? [type(Y), tensor([last], "f32")] : [type(Y)]}) outs(%empty : ${type(Y)}) {
^bb0(%x: f32, ${weighted ? "%w" + ": f32, " : ""}%old: f32):
@let f32 %present = ${mode == "IDF" ? "%x" + " > 0 ? 1 : 0" : "%x"}
@let f32 %y = ${weighted ? "%present" + " * " + "%w" : "%present"}
  linalg.yield %y : f32
} -> ${type(Y)}
