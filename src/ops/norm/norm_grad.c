/* Emitting the backward pass of a normalization. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/norm_grad.h"

#include "graph/node_formula.h"

cm_value cm_norm_widen(struct cm_grad *g, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&g->build, x);
    return !type || type->dtype == CM_DOUBLE ? x : cm_emit_cast(g, x, CM_FLOAT);
}

cm_value cm_norm_as(struct cm_grad *g, cm_value x, cm_value like)
{
    const struct cm_type *type = cm_builder_type(&g->build, like);
    return type ? cm_emit_cast(g, x, type->dtype) : 0;
}

enum cm_status cm_norm_set(struct cm_grad *g, int i, cm_value gradient)
{
    const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, i));
    return type ? cm_grad_set(g, i, cm_emit_cast(g, gradient, type->dtype)) : g->build.status;
}

cm_value cm_norm_sum(struct cm_grad *g, cm_value x, cm_value axes, bool keepdims)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    return cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", keepdims)), x,
                        axes);
}

cm_value cm_norm_axes(struct cm_grad *g, int from, int to, int less)
{
    int64_t axes[CM_MAX_RANK];
    size_t n = 0;
    for (int i = from; i < to; i++)
        if (i != less)
            axes[n++] = i;
    return cm_build_int64s(&g->build, n, axes);
}

cm_value cm_norm_per_channel(struct cm_grad *g, cm_value x, int after)
{
    return after > 0 ? cm_emit(g, "Unsqueeze", x, cm_norm_axes(g, 1, 1 + after, -1)) : x;
}

/* How many elements of x go into one element of sum. */
static cm_value count_of(struct cm_grad *g, cm_value x, cm_value sum)
{
    const struct cm_type *type = cm_builder_type(&g->build, x),
                         *less = cm_builder_type(&g->build, sum);
    struct cm_shape whole, part;
    int64_t total, kept;
    if (!type || !less)
        return 0;
    if (cm_type_shape(type, &whole) && cm_type_shape(less, &part) &&
        cm_shape_count(&whole, &total) && cm_shape_count(&part, &kept) && kept > 0)
        return cm_emit_scalar_like(g, x, (double)(total / kept));
    const cm_value count = cm_emit(g, "Div", cm_emit(g, "Size", x), cm_emit(g, "Size", sum));
    return cm_emit_cast(g, count, type->dtype);
}

struct cm_normalized cm_norm_forward(struct cm_grad *g, cm_value x, cm_value axes, bool centred,
                                     double epsilon, cm_value mean, cm_value inverse)
{
    struct cm_normalized n = {.axes = axes, .centred = centred};
    cm_value off = x, sum = mean;
    if (centred && !mean)
        sum = cm_norm_sum(g, x, axes, true);
    else if (!centred)
        sum = cm_norm_sum(g, cm_emit(g, "Mul", x, x), axes, true);
    n.count = count_of(g, x, sum);
    if (centred) {
        mean = mean ? mean : cm_emit(g, "Div", sum, n.count);
        off = cm_emit(g, "Sub", x, mean);
        sum = inverse ? 0 : cm_norm_sum(g, cm_emit(g, "Mul", off, off), axes, true);
    }
    if (!inverse) {
        const cm_value small = cm_emit_scalar_like(g, x, epsilon);
        const cm_value spread = cm_emit(g, "Add", cm_emit(g, "Div", sum, n.count), small);
        inverse = cm_emit(g, "Reciprocal", cm_emit(g, "Sqrt", spread));
    }
    n.inverse = inverse;
    n.xhat = cm_emit(g, "Mul", off, inverse);
    return n;
}

/* dx = inverse * (dxhat - mean(dxhat) - xhat * mean(dxhat * xhat)), the first mean only where one
 * was taken off. */
cm_value cm_norm_backward(struct cm_grad *g, const struct cm_normalized *n, cm_value dxhat)
{
    const cm_value along = cm_norm_sum(g, cm_emit(g, "Mul", dxhat, n->xhat), n->axes, true);
    cm_value rest =
        cm_emit(g, "Sub", dxhat, cm_emit(g, "Mul", n->xhat, cm_emit(g, "Div", along, n->count)));
    if (n->centred) {
        const cm_value sum = cm_norm_sum(g, dxhat, n->axes, true);
        rest = cm_emit(g, "Sub", rest, cm_emit(g, "Div", sum, n->count));
    }
    return cm_emit(g, "Mul", n->inverse, rest);
}
