// Normal random numbers, those that a run with seed 0 draws first.
@do random_fill(output, input, true, attr("scale"), attr("mean"))
