// Normal random numbers.
@do random_fill(output, input, true, attr("scale"), attr("mean"))
