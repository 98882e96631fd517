// to = a with rows p and q of matrix b, of n elements, in each other's place.
@macro a, type, b, p, q, n, to
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
${to} = scf.for %i = %c0 to ${n} step %c1 iter_args(%t = ${a}) -> (${type}) {
  %one = tensor.extract %t[${b}, ${p}, %i] : ${type}
  %other = tensor.extract %t[${b}, ${q}, %i] : ${type}
  %once = tensor.insert %other into %t[${b}, ${p}, %i] : ${type}
  %twice = tensor.insert %one into %once[${b}, ${q}, %i] : ${type}
  scf.yield %twice : ${type}
}
