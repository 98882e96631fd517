// Elements replaced by the value of their key, the first of equal ones; others by a default.
@set K = elem(X)
@set V = elem(Y)
@set keys = known(attr("keys_tensor")) ? attr("keys_tensor") : is_float(X) ? attr("keys_floats") : attr("keys_int64s")
@set values = known(attr("values_tensor")) ? attr("values_tensor") : is_float(Y) ? attr("values_floats") : attr("values_int64s")
@set given = attr("default_tensor")
@set otherwise = known(given) ? given[0] : is_float(Y) ? attr("default_float") : attr("default_int64")
@set r = rank(X)
@set all = ["d" + i for i in range(r)]
@set count = len(keys)
@set key_table = constant(keys, [count], K)
@set value_table = constant(values, [count], V)
%empty = tensor.empty(${unknown_sizes(X)}) : ${type(Y)}
@let index %none = 0
@let index %step = 1
@let index %count = ${count}
%Y = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (${all})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in range(r)]}]}
    ins(%X : ${type(X)}) outs(%empty : ${type(Y)}) {
^bb0(%element: ${scalar(X)}, %old: ${scalar(Y)}):
  %at = scf.while (%place = %none) : (index) -> index {
@let i1(index) %inside = %place < %count
    %differs = scf.if %inside -> (i1) {
      %key = tensor.extract ${key_table}[%place] : ${tensor([count], K)}
@if is_float(X)
@let i1(${K}) %unlike = %key != %element
@let i1(${K}) %number = %key == %key
@let i1(${K}) %given = %element == %element
@let i1 %one_is = or(%number, %given)
@let i1 %other = and(%unlike, %one_is)
@else
@let i1(${K}) %other = %key != %element
@end
      scf.yield %other : i1
    } else {
@let i1 %stop = false
      scf.yield %stop : i1
    }
    scf.condition(%differs) %place : index
  } do {
  ^bb0(%here: index):
@let index %next = %here + %step
    scf.yield %next : index
  }
@let i1(index) %found = %at < %count
  %value = scf.if %found -> (${scalar(Y)}) {
    %there = tensor.extract ${value_table}[%at] : ${tensor([count], V)}
    scf.yield %there : ${scalar(Y)}
  } else {
    %default = arith.constant ${literal(otherwise, V)} : ${scalar(Y)}
    scf.yield %default : ${scalar(Y)}
  }
  linalg.yield %value : ${scalar(Y)}
} -> ${type(Y)}
