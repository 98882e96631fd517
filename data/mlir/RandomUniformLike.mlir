// Random numbers from low to below high.
@do random_fill(output, input, false, attr("high") - attr("low"), attr("low"))
