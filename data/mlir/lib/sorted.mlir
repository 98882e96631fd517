// to, a tensor of N indices (unknown: n names their number) = the order in which columns of keys, M
// rows (m) of integers K, come if sorted by the first row, then by the second and so on; equal ones
// stay in their order. Rows are sorted from the last to the first, each by merging.
@macro keys, M, N, m, n, K, to
@set A = tensor([N], "index")
@set grid = tensor([M, N], K)
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%room = tensor.empty(${known(N) ? [] : [n]}) : ${A}
%room_too = tensor.empty(${known(N) ? [] : [n]}) : ${A}
%in_order = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%room : ${A}) {
^bb0(%old_index: index):
  %own_index = linalg.index 0 : index
  linalg.yield %own_index : index
} -> ${A}
// Runs of 1, 2, 4 .. columns are merged until one is as long as all.
@let i64 %last_column = i64(index ${n}) - 1
%zeros = math.ctlz %last_column : i64
@let i64 %doublings = %last_column > 0 ? 64 - %zeros : 0
@let index %passes = index(i64 %doublings)
@let index %last = ${n} - 1
%by_rows:2 = scf.for %c = %c0 to ${m} step %c1 iter_args(%a1 = %in_order, %b1 = %room_too) -> (${A}, ${A}) {
@let index %row = ${m} - 1 - %c
  %by_pass:2 = scf.for %p = %c0 to %passes step %c1 iter_args(%a2 = %a1, %b2 = %b1) -> (${A}, ${A}) {
@let index %width = shl(1, %p)
@let index %both = %width + %width
    %merged = scf.for %low = %c0 to ${n} step %both iter_args(%b3 = %b2) -> (${A}) {
@let index %middle = min(%low + %width, ${n})
@let index %high = min(%low + %both, ${n})
      %run:3 = scf.for %k = %low to %high step %c1 iter_args(%b4 = %b3, %i = %low, %j = %middle) -> (${A}, index, index) {
@let index %left = min(%i, %last)
@let index %right = min(%j, %last)
        %one = tensor.extract %a2[%left] : ${A}
        %other = tensor.extract %a2[%right] : ${A}
        %one_key = tensor.extract ${keys}[%row, %one] : ${grid}
        %other_key = tensor.extract ${keys}[%row, %other] : ${grid}
@let i1(${K}) %ordered = %one_key <= %other_key
@let i1(index) %left_over = %i < %middle
@let i1(index) %right_over = %j < %high
@let i1 %stay = !%right_over || %ordered
@let i1 %take_left = %left_over && %stay
@let index %taken = %take_left ? %one : %other
@let index %next_i = %take_left ? %i + 1 : %i
@let index %next_j = %take_left ? %j : %j + 1
        %b5 = tensor.insert %taken into %b4[%k] : ${A}
        scf.yield %b5, %next_i, %next_j : ${A}, index, index
      }
      scf.yield %run#0 : ${A}
    }
    %a3 = bufferization.materialize_in_destination %merged in %a2 : (${A}, ${A}) -> ${A}
    scf.yield %a3, %merged : ${A}, ${A}
  }
  scf.yield %by_pass#0, %by_pass#1 : ${A}, ${A}
}
${to} = tensor.cast %by_rows#0 : ${A} to ${A}
