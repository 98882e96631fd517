// Random numbers from low to below high.
@do random_fill(output, none, false, attr("high") - attr("low"), attr("low"))
