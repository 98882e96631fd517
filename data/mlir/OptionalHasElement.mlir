// A tensor is there; an operand that is left out is not. Optional values are not compiled.
%there = arith.constant ${has(input) ? "true" : "false"}
%output = tensor.from_elements %there : tensor<i1>
