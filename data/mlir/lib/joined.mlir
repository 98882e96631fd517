// to = old and new, both elements of type E, joined as the attribute `reduction` of a scatter says.
// Halves are joined in f32.
@macro old, new, E, how, to
@set T = E == "f16" or E == "bf16" ? "f32" : E
@let ${T} %a = ${T}(${E} ${old})
@let ${T} %b = ${T}(${E} ${new})
@let ${T} %c = ${how == "add" ? "%a + %b" : how == "mul" ? "%a * %b" : how == "max" ? "max(%a, %b)" : "min(%a, %b)"}
@let ${E} ${to} = ${E}(${T} %c)
