// Normal random numbers.
@do random_fill(output, none, true, attr("scale"), attr("mean"))
