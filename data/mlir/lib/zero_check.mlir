// Fails where a zero point (or none) does not fit the sizes of its matrix along the axes it goes by.
@macro zero, axes, sizes
@if known(zero)
@do numbers(zero)
@for i in range(rank(zero))
@set need = known(axes[i]) ? sizes[axes[i]] : 1
@if not (numbers[i] == 1 or numbers[i] >= 0 and numbers[i] == need)
@let i1(index) %fits${i} = ${numbers[i]} == 1 || ${numbers[i]} == ${need}
cf.assert %fits${i}, "${place()}: a zero point does not fit its matrices"
@end
@end
@end
