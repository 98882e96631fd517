// Sums of products over named axes, as one nest of loops: an axis of each name.
@set n = len(Inputs)
// Names of the axes of each operand. The axes that "..." stands for are .0, .1 and so on, counted from
// the last.
@set terms = [[]]
@set explicit = false
@for x in chars(attr("equation"))
@if x == ","
@set terms = terms + [[]]
@elif x == "-"
@set explicit = true
@set terms = terms + [[]]
@elif x != " " and x != ">"
@set terms = terms[0:len(terms) - 1] + [terms[len(terms) - 1] + [x]]
@end
@end
@set more = 0
@set named = []
@for k in range(n)
@set plain = [x for x in terms[k] if x != "."]
@set dots = "." in terms[k] ? rank(Inputs[k]) - len(plain) : 0
@set more = max(more, dots)
@set seen = 0
@set names = []
@for x in terms[k]
@if x != "."
@set names = names + [x]
@elif seen == 0
@set names = names + ["." + (dots - 1 - i) for i in range(dots)]
@set seen = 1
@end
@end
@set named = named + [names]
@end
@set every = []
@for names in named
@set every = every + names
@end
@set rest = ["." + (more - 1 - i) for i in range(more)]
@if explicit
@set seen = 0
@set out = []
@for x in terms[n]
@if x != "."
@set out = out + [x]
@elif seen == 0
@set out = out + rest
@set seen = 1
@end
@end
@else
// Names that stand once, in their order in the alphabet.
@set out = rest + [x for x in chars("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") if len([y for y in every if y == x]) == 1]
@end
@set summed = []
@for x in every
@if not (x in out) and not (x in summed)
@set summed = summed + [x]
@end
@end
// Where the result's last axis is also the last of an operand, it is the innermost loop.
@set o = len(out)
@set inner = o > 0 and len([names for names in named if len(names) > 0 and names[len(names) - 1] == (o > 0 ? out[o - 1] : "")]) > 0
@set loops = inner ? out[0:o - 1] + summed + [out[o - 1]] : out + summed
// The size of each name: a number, or of which axis of which operand it is.
@set sizes = []
@for x in loops
@set wide = none
@set from = none
@for k in range(n)
@for i in range(len(named[k]))
@if named[k][i] == x
@set d = dim(Inputs[k], i)
@set wide = known(d) and (d != 1 or not known(wide)) ? d : wide
@set from = known(d) ? from : [k, i]
@end
@end
@end
@set wide = wide == 1 and known(from) ? none : wide
@set sizes = sizes + [[wide, from]]
@end
@set maps = []
@for k in range(n)
@set map = []
@for i in range(len(named[k]))
@set at = [j for j in range(len(loops)) if loops[j] == named[k][i]][0]
@set d = dim(Inputs[k], i)
@set s = sizes[at]
@set map = map + [d == 1 and s[0] != 1 ? "0" : "d" + at]
@if not known(d)
@let i1(index) %equal${k}_${i} = ${size(Inputs[k], i)} == ${known(s[0]) ? s[0] : size(Inputs[s[1][0]], s[1][1])}
cf.assert %equal${k}_${i}, "${place()}: sizes of axes of one name differ"
@end
@end
@set maps = maps + [map]
@end
@set E = elem(Output)
@set T = E == "f16" or E == "bf16" ? "f32" : E
@set where = [[j for j in range(len(loops)) if loops[j] == x][0] for x in out]
@set kept = [sizes[j][0] for j in where]
@set unknown = [size(Inputs[sizes[j][1][0]], sizes[j][1][1]) for j in where if not known(sizes[j][0])]
@set all = ["d" + j for j in range(len(loops))]
@let ${T} %zero = ${E == "i1" ? "false" : "0"}
%empty = tensor.empty(${unknown}) : ${tensor(kept, T)}
@if len(summed) > 0
%start = linalg.fill ins(%zero : ${bare(T)}) outs(%empty : ${tensor(kept, T)}) -> ${tensor(kept, T)}
@end
%total = linalg.generic {
    indexing_maps = [${["affine_map<(" + join(all, ", ") + ") -> (" + join(map, ", ") + ")>" for map in maps]}, affine_map<(${all}) -> (${["d" + j for j in where]})>],
    iterator_types = [${[quote(x in summed ? "reduction" : "parallel") for x in loops]}]}
    ins(${Inputs} : ${[type(x) for x in Inputs]}) outs(${len(summed) > 0 ? "%start" : "%empty"} : ${tensor(kept, T)}) {
^bb0(${["%x" + k + ": " + scalar(Inputs[k]) for k in range(n)]}, %so_far: ${bare(T)}):
@for k in range(n)
@let ${T} %w${k} = ${T}(${elem(Inputs[k])} %x${k})
@end
@let ${T} %product = ${join(["%w" + k for k in range(n)], " * ")}
@if len(summed) > 0
@let reassoc ${T} %next = %so_far + %product
  linalg.yield %next : ${bare(T)}
@else
  linalg.yield %product : ${bare(T)}
@end
} -> ${tensor(kept, T)}
@do rounded_to("%total", kept, unknown, T, E, "%narrow")
%Output = tensor.cast %narrow : ${tensor(kept, E)} to ${type(Output)}
