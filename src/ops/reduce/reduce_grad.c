/* What the gradients of the Reduce operators share: bringing results back to a shape that
 * broadcasts against the data. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/reduction.h"

/* The same axes again, kept as 1: a sum, since of all reductions only it takes axes as an operand
 * at opset 17. */
cm_value cm_reduce_sum_like(struct cm_grad *g, cm_value terms)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const int64_t noop = cm_node_int(g->node, "noop_with_empty_axes");
    const cm_value inputs[2] = {terms, cm_grad_input(g, 1)};
    return cm_build(
        &g->build,
        &(struct cm_emission){.op = "ReduceSum",
                              .inputs = inputs,
                              .n_inputs = inputs[1] ? 2 : 1,
                              CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 1),
                                            cm_attr_int(arena, "noop_with_empty_axes", noop))});
}

/* Is it sure that one axis or more is given? Then Unsqueeze by the same axes undoes the removal. */
static bool has_axes(const struct cm_grad *g)
{
    const cm_value axes = cm_grad_input(g, 1);
    const struct cm_type *type = axes ? cm_builder_type(&g->build, axes) : NULL;
    return type && type->rank == 1 && type->dims[0].value > 0;
}

/* A result of the forward node, or its gradient, as if keepdims had been 1. */
static cm_value kept(struct cm_grad *g, cm_value value)
{
    if (cm_node_int(g->node, "keepdims"))
        return value;
    if (has_axes(g))
        return cm_emit(g, "Unsqueeze", value, cm_grad_input(g, 1));
    const struct cm_type *type = cm_builder_type(&g->build, value);
    if (type && type->rank == 0) /* all axes went, and a scalar broadcasts as it is */
        return value;
    return cm_emit_with(g, "Reshape",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&g->build), "allowzero", 1)),
                        value, cm_emit(g, "Shape", cm_reduce_sum_like(g, cm_grad_input(g, 0))));
}

enum cm_status cm_reduce_grad(struct cm_grad *g)
{
    const struct cm_reduction *reduction = g->node->op->arg;
    const cm_value y = kept(g, cm_grad_output(g, 0)), dy = kept(g, cm_grad_incoming(g, 0));
    return cm_grad_set(g, 0, reduction->slope(g, cm_grad_input(g, 0), y, dy));
}
