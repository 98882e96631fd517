// One of two bodies, by a condition. Results of a known size are written to one place by both.
@set wanted = [o for o in range(len(outputs)) if has(outputs[o])]
@let index %zero = 0
@do check_length(cond, 1)
%holds = tensor.extract %cond[${["%zero" for axis in range(rank(cond))]}] : ${type(cond)}
@for o in wanted
@if not (none in dims(outputs[o]))
%place${o} = tensor.empty() : ${type(outputs[o])}
@end
@end
@set places = ["%place" + o for o in range(len(outputs))]
${[outputs[o] for o in wanted]} = scf.if %holds -> (${[type(outputs[o]) for o in wanted]}) {
@set done = body("then_branch")
@do branch_results(body_results("then_branch"), outputs, wanted, places)
} else {
@set done = body("else_branch")
@do branch_results(body_results("else_branch"), outputs, wanted, places)
}
