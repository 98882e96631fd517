// Are two elements equal? NaN equals nothing.
@elementwise
@let ${"i1(" + elem(A) + ")"} %C = %A == %B
