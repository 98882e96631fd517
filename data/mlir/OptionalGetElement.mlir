// A tensor is its own element. Optional values are not compiled.
%output = tensor.cast %input : ${type(input)} to ${type(output)}
