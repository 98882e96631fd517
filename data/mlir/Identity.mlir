// The operand itself: the result is another name for it.
%output = tensor.cast %input : ${type(input)} to ${type(output)}
