// Random numbers from low to below high, those that a run with seed 0 draws first.
@do random_fill(output, none, false, attr("high") - attr("low"), attr("low"))
