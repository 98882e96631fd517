// Fails unless `have`, the size of an axis of a scale, is that of the axis of size n that it goes with, in
// blocks where block is not 0, or 1 where one scale may serve all; indices.
@macro have, n, block, one_serves
@let index %need = ${block > 0 ? "ceildiv(" + n + ", " + block + ")" : n}
@let i1(index) %fits = ${have} == %need${one_serves ? " || " + have + " == 1" : ""}
cf.assert %fits, "${place()}: a scale or zero point does not have the shape it needs"
