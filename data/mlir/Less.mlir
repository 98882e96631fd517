// Is one element less than the other?
@elementwise
@let ${"i1(" + elem(A) + ")"} %C = %A < %B
