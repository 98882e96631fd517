// Y = X with each element the nearest one, by a table of indices for each axis that moves; an index
// below zero is extrapolated.
@macro X, Y, moved, facts, how
@set r = rank(X)
@set crop = how == "tf_crop_and_resize"
@set rounding = attr("nearest_mode")
@for k in range(len(moved))
@set a = moved[k]
@set f = facts[k]
@set T = tensor([dim(Y, a)], "index")
%room${a} = tensor.empty(${known(dim(Y, a)) ? [] : [f[5]]}) : ${T}
%table${a} = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%room${a} : ${T}) {
^bb0(%old: index):
  %at${a} = linalg.index 0 : index
@do resize_place(how, "%at" + a, f[0], f[1], f[2], f[3], f[4], "%x" + a, "%outside" + a)
@let f64 %low${a} = floor(%x${a})
@let f64 %ratio${a} = %x${a} - %low${a}
@let f64 %up${a} = %low${a} + 1
@let f64 %near${a} = ${rounding == "floor" ? "%low" + a : "%ratio" + a + (rounding == "ceil" ? " > 0" : rounding == "round_prefer_ceil" ? " >= 0.5" : " > 0.5") + " ? " + "%up" + a + " : " + "%low" + a}
@let index %chosen${a} = min(max(index(f64 %near${a}), 0), index(f64 ${f[0]}) - 1)
@if crop
@let index %none${a} = -1
  %found${a} = arith.select %outside${a}, %none${a}, %chosen${a} : index
@end
  linalg.yield ${crop ? "%found" + a : "%chosen" + a} : index
} -> ${T}
@end
@set all = ["d" + a for a in range(r)]
%empty = tensor.empty(${[a in moved ? [facts[k][5] for k in range(len(moved)) if moved[k] == a][0] : size(X, a) for a in range(r) if not known(dim(Y, a))]}) : ${type(Y)}
${Y} = linalg.generic {
    indexing_maps = [${["affine_map<(" + join(all, ", ") + ") -> (d" + a + ")>" for a in moved] + ["affine_map<(" + join(all, ", ") + ") -> (" + join(all, ", ") + ")>"]}],
    iterator_types = [${[quote("parallel") for a in all]}]}
    ins(${["%table" + a for a in moved]} : ${[tensor([dim(Y, a)], "index") for a in moved]}) outs(%empty : ${type(Y)}) {
^bb0(${["%i" + a + ": index" for a in moved]}, %old: ${scalar(Y)}):
@for a in range(r)
@if not (a in moved)
  %i${a} = linalg.index ${a} : index
@end
@end
@if crop
// Every index is made one that can be read.
@set value = attr("extrapolation_value")
@if value != 0 and not (elem(X) in ["f16", "bf16", "f32", "f64", "i1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@refuse "it extrapolates elements of a type that is not compiled"
@end
@let index %zero = 0
@for k in range(len(moved))
@let index %j${moved[k]} = max(%i${moved[k]}, 0)
@let i1(index) %is${k} = %i${moved[k]} < 0
@end
@for k in range(1, len(moved))
  %any${k} = arith.ori ${k == 1 ? "%is0" : "%any" + (k - 1)}, %is${k} : i1
@end
@if value == 0
  %fill = arith.constant ${is_float(X) ? "0.0" : "0"} : ${scalar(X)}
@else
@let f64 %value = ${value}
@do store_real("%value", "f64", elem(X), "%fill")
@end
  %element = tensor.extract ${X}[${[a in moved ? "%j" + a : "%i" + a for a in range(r)]}] : ${type(X)}
  %chosen = arith.select ${len(moved) == 1 ? "%is0" : "%any" + (len(moved) - 1)}, %fill, %element : ${scalar(X)}
  linalg.yield %chosen : ${scalar(Y)}
@else
  %element = tensor.extract ${X}[${["%i" + a for a in range(r)]}] : ${type(X)}
  linalg.yield %element : ${scalar(Y)}
@end
} -> ${type(Y)}
