// Gives `random`, [key, place] (names of i64), for the numbers of a node without a seed: the seed, and the
// word of the random state that says how far it is. none: every run draws the first numbers of seed 0.
@macro
@set random = none
@if keeps_random() and not seeded()
@let index %first = 0
@let index %word = ${random_word()}
%seed = memref.load ${random_state()}[%first] : memref<?xi64>
@let i64 %key = %seed + ${seed_offset()}
%place = memref.load ${random_state()}[%word] : memref<?xi64>
@set random = ["%key", "%place"]
@end
@give random
