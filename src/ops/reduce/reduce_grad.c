/* What the gradients of the Reduce operators share: bringing results back to a shape that
 * broadcasts against the data. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/reduction.h"

#include "graph/node_formula.h"

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
    return cm_emit_formula(
        g,
        "value, x, axes: kept = ReduceSum<keepdims=1, noop_with_empty_axes>(x, axes);"
        "Reshape<allowzero=1>(value, Shape(kept))",
        value, cm_grad_input(g, 0), cm_grad_input(g, 1));
}

enum cm_status cm_reduce_grad(struct cm_grad *g)
{
    const struct cm_reduction *reduction = g->node->op->arg;
    const cm_value y = kept(g, cm_grad_output(g, 0)), dy = kept(g, cm_grad_incoming(g, 0));
    return cm_grad_set(
        g, 0,
        cm_emit_formula(g, reduction->slope, cm_grad_input(g, 0), y, dy, cm_grad_input(g, 1)));
}
