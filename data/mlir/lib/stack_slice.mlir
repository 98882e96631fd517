// next = the stacked slices `carried`, a tensor of sizes `dims` whose axis `axis` counts them, with
// one more at an index. Where there was no room before the loop, there is none before iteration 0:
// room for `limit` slices is made then, or, without a limit, for twice as many when it is full.
@macro slice, carried, dims, axis, at, iteration, limit, placed, next
@set r = rank(slice) + 1
@set T = tensor(dims, elem(slice))
@set own = [axis > a ? a : a - 1 for a in range(r)]
@set lengths = [a == axis ? 1 : known(dim(slice, own[a])) ? dim(slice, own[a]) : size(slice, own[a]) for a in range(r)]
@if placed
@set room = carried
@else
  %axis = arith.constant ${axis} : index
  %had = tensor.dim ${carried}, %axis : ${T}
@let i1(index) %full = ${iteration} >= %had
@if known(limit)
@let index %more = ${limit}
@else
@let index %more = %had * 2 + 8
@end
  %room = scf.if %full -> (${T}) {
@set sizes = [a == axis ? "%more" : lengths[a] for a in range(r) if not known(dims[a])]
    %new = tensor.empty(${sizes}) : ${T}
@set held = [a == axis ? "%had" : lengths[a] for a in range(r)]
    %kept = tensor.insert_slice ${carried} into %new[${[0 for a in range(r)]}] [${held}] [${[1 for a in range(r)]}] : ${T} into ${T}
    scf.yield %kept : ${T}
  } else {
@for a in range(r)
@if a != axis and not known(dims[a])
    %axis${a} = arith.constant ${a} : index
    %was${a} = tensor.dim ${carried}, %axis${a} : ${T}
@let i1(index) %same${a} = %was${a} == ${lengths[a]}
    cf.assert %same${a}, "${place()}: a scan output changes its shape between iterations"
@end
@end
    scf.yield ${carried} : ${T}
  }
@set room = "%room"
@end
  ${next} = tensor.insert_slice ${slice} into ${room}[${[a == axis ? at : 0 for a in range(r)]}] [${lengths}] [${[1 for a in range(r)]}] : ${type(slice)} into ${T}
