// From now on the node, which has no seed, is at `place` (i64) of its random numbers.
@macro place
@let index %word = ${random_word()}
memref.store ${place}, ${random_state()}[%word] : memref<?xi64>
