// The bits of elements as another type of the same width.
@elementwise stored
@if scalar(input) == scalar(output)
%output = arith.bitcast %input : ${scalar(input)} to ${scalar(output)}
@elif scalar(input) == "i1"
%output = arith.extui %input : i1 to ${scalar(output)}
@elif scalar(output) == "i1"
@let i1(${elem(input)}) %output = %input != 0
@else
%output = arith.bitcast %input : ${scalar(input)} to ${scalar(output)}
@end
