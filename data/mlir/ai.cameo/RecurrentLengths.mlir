// Lengths of sequences, handed on if they fit X.
@whole
@set first = attr("layout") != 0 ? 0 : 1
@do check_same(sequence_lens, 0, X, first)
@do check_lengths(sequence_lens, size(X, 1 - first))
%lengths = tensor.cast %sequence_lens : ${type(sequence_lens)} to ${type(lengths)}
