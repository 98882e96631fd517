// Fails unless `have`, the size of an axis of a scale or zero point, is 1 or that of the axis of size n that
// it goes with, in blocks where block is not 0; indices.
@macro have, n, block
@let index %need = ${block > 0 ? "ceildiv(" + n + ", " + block + ")" : n}
@let i1(index) %fits = ${have} == %need || ${have} == 1
cf.assert %fits, "${place()}: a scale or zero point does not have the shape it needs"
