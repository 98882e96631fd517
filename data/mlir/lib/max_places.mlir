// Gives `best` and `places`: the largest element of each window, and where in x it lies, the first
// of equals and NaN before all numbers. The padding takes no part.
@macro x, image, image_dims, kernel, strides, dilations, before, sizes
@set r = len(kernel)
@set T = elem(x)
@set W = T == "f16" or T == "bf16" ? "f32" : T
@set to_dims = [s >= 0 ? s : none for s in sizes]
@set unknown = [s for s in sizes if not (s >= 0)]
@set loops = ["d0", "d1"] + ["o" + i for i in range(r)] + ["k" + i for i in range(r)]
@set where = ["d0", "d1"] + ["o" + i + " * " + strides[i] + " + k" + i + " * " + dilations[i] for i in range(r)]
@set out = ["d0", "d1"] + ["o" + i for i in range(r)]
@do numbers(x)
// Steps between neighbours along an axis, in the order that storage_order asks for.
@let index %step${attr("storage_order") != 0 ? 0 : r - 1} = 1
@for i in range(1, r)
@if attr("storage_order") != 0
@let index %step${i} = %step${i - 1} * ${numbers[i + 1]}
@else
@let index %step${r - 1 - i} = %step${r - i} * ${numbers[r + 2 - i]}
@end
@end
@let index %plane = 1
@set plane = "%plane"
@for i in range(r)
@set next = fresh()
@let index ${next} = ${plane} * ${numbers[i + 2]}
@set plane = next
@end
@let ${T} %least = least
@let i64 %nowhere = -1
%windows = tensor.empty() : ${tensor(kernel, "i8")}
%best_empty = tensor.empty(${unknown}) : ${tensor(to_dims, T)}
%best_start = linalg.fill ins(%least : ${bare(T)}) outs(%best_empty : ${tensor(to_dims, T)}) -> ${tensor(to_dims, T)}
%place_empty = tensor.empty(${unknown}) : ${tensor(to_dims, "i64")}
%place_start = linalg.fill ins(%nowhere : i64) outs(%place_empty : ${tensor(to_dims, "i64")}) -> ${tensor(to_dims, "i64")}
%found:2 = linalg.generic {
    indexing_maps = [affine_map<(${loops}) -> (${where})>, affine_map<(${loops}) -> (${["k" + i for i in range(r)]})>,
                     affine_map<(${loops}) -> (${out})>, affine_map<(${loops}) -> (${out})>],
    iterator_types = ["parallel", "parallel", ${[quote("parallel") for i in range(r)] + [quote("reduction") for i in range(r)]}]}
    ins(${image}, %windows : ${tensor(image_dims, T)}, ${tensor(kernel, "i8")})
    outs(%best_start, %place_start : ${tensor(to_dims, T)}, ${tensor(to_dims, "i64")}) {
^bb0(%in_x: ${bare(T)}, %unread: i8, %so_far: ${bare(T)}, %at: i64):
@for i in range(r)
  %o${i} = linalg.index ${i + 2} : index
  %k${i} = linalg.index ${r + i + 2} : index
@let index %p${i} = %o${i} * ${strides[i]} + %k${i} * ${dilations[i]} - ${before[i]}
@let i1(index) %in${i} = %p${i} >= 0 && %p${i} < ${numbers[i + 2]}
@end
@let ${W} %v = ${W}(${T} %in_x)
@let ${W} %in_b = ${W}(${T} %so_far)
@let i1(${W}) %above = %v > %in_b
@let i1(${W}) %first_nan = %v != %v && %in_b == %in_b
@let i1(i64) %none_yet = %at < 0
@let i1(i1) %wins = %above || %first_nan || %none_yet
@set inside = fresh()
${inside} = arith.andi %wins, %in0 : i1
@for i in range(1, r)
@set both = fresh()
${both} = arith.andi ${inside}, %in${i} : i1
@set inside = both
@end
@let index %here0 = %p0 * %step0
@for i in range(1, r)
@let index %here${i} = %here${i - 1} + %p${i} * %step${i}
@end
@let index %here = %here${r - 1}
@let i64 %here_wide = i64(index %here)
  %best = arith.select ${inside}, %in_x, %so_far : ${bare(T)}
  %place = arith.select ${inside}, %here_wide, %at : i64
  linalg.yield %best, %place : ${bare(T)}, i64
} -> (${tensor(to_dims, T)}, ${tensor(to_dims, "i64")})
// Places count through all of x; a window that sees nothing of it names its plane's first element.
%absolute_empty = tensor.empty(${unknown}) : ${tensor(to_dims, "i64")}
@set all = ["d" + i for i in range(r + 2)]
%absolute = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%found#1 : ${tensor(to_dims, "i64")}) outs(%absolute_empty : ${tensor(to_dims, "i64")}) {
^bb0(%at: i64, %old: i64):
  %n = linalg.index 0 : index
  %c = linalg.index 1 : index
@let index %first = (%n * ${numbers[1]} + %c) * ${plane}
@let i64 %sum = i64(index %first) + max(%at, 0)
  linalg.yield %sum : i64
} -> ${tensor(to_dims, "i64")}
@set best = "%found" + "#0"
@set places = "%absolute"
@give best, places, to_dims
