// The first elements of each sequence in reverse order, as many as its length says; the others stay.
@whole
@set r = rank(input)
@set batch = attr("batch_axis")
@set time = attr("time_axis")
@do check_same(sequence_lens, 0, input, batch)
@do check_lengths(sequence_lens, size(input, time))
@set all = ["d" + i for i in range(r)]
%empty = tensor.empty(${unknown_sizes(input)}) : ${type(Y)}
%Y = linalg.generic {
    indexing_maps = [affine_map<(${all}) -> (d${batch})>, affine_map<(${all}) -> (${all})>],
    iterator_types = [${[quote("parallel") for i in all]}]}
    ins(%sequence_lens : ${type(sequence_lens)}) outs(%empty : ${type(Y)}) {
^bb0(%given: i64, %old: ${scalar(Y)}):
@for i in range(r)
  %d${i} = linalg.index ${i} : index
@end
@let index %length = index(i64 %given)
@let index %from = %d${time} < %length ? %length - 1 - %d${time} : %d${time}
  %x = tensor.extract %input[${[i == time ? "%from" : "%d" + i for i in range(r)]}] : ${type(input)}
  linalg.yield %x : ${scalar(Y)}
} -> ${type(Y)}
