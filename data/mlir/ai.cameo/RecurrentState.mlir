// The first state of a recurrent layer, handed on if it fits X.
@whole
@set first = attr("layout") != 0
@do check_same(state, first ? 0 : 1, X, first ? 0 : 1)
@set needs = [first ? none : attr("directions"), first ? attr("directions") : none, attr("hidden_size")]
@for i in range(3)
@if known(needs[i]) and dim(state, i) != needs[i]
@let i1(index) %fits${i} = ${size(state, i)} == ${needs[i]}
cf.assert %fits${i}, "${place()}: axis ${i} of a first state has another size than the layer needs"
@end
@end
%fitting = tensor.cast %state : ${type(state)} to ${type(fitting)}
