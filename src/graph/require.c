/* Demands of an operator as nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/require.h"

#include "graph/op.h"

const struct cm_type *cm_require_type(const struct cm_require *r, int operand)
{
    const bool is_there = operand < r->node->n_inputs && r->in[operand];
    const struct cm_type *type = is_there ? cm_builder_type(&r->build, r->in[operand]) : NULL;

    return type && type->kind == CM_KIND_TENSOR && type->rank != CM_RANK_UNKNOWN ? type : NULL;
}

/* The axis, if there is such an operand and axis. */
static bool find_axis(const struct cm_require *r, int operand, int *axis, struct cm_dim *dim)
{
    const struct cm_type *type = cm_require_type(r, operand);

    if (type && *axis < 0)
        *axis += type->rank;
    if (!type || *axis < 0 || *axis >= type->rank)
        return false;
    *dim = type->dims[*axis];
    return true;
}

cm_value cm_require_length(struct cm_require *r, int operand, int axis)
{
    struct cm_arena *arena = cm_builder_arena(&r->build);
    struct cm_dim dim;

    if (!find_axis(r, operand, &axis, &dim))
        return 0;
    return cm_emit_with(
        r, "Shape",
        CM_ATTRIBUTES(cm_attr_int(arena, "start", axis), cm_attr_int(arena, "end", axis + 1)),
        r->in[operand]);
}

void cm_require_that(struct cm_require *r, int operand, cm_value condition, const char *reason)
{
    struct cm_arena *arena = cm_builder_arena(&r->build);

    if (condition && cm_require_type(r, operand))
        r->in[operand] = cm_emit_with(r, "ai.cameo::Require",
                                      CM_ATTRIBUTES(cm_attr_str(arena, "reason", cm_str(reason))),
                                      r->in[operand], condition);
}

/* Sizes that are known were compared by the inference rule. */
static bool is_sure(struct cm_dim a, struct cm_dim b)
{
    return (cm_dim_known(a) && cm_dim_known(b)) || cm_dim_same(a, b);
}

void cm_require_size(struct cm_require *r, int operand, int axis, int64_t size, const char *reason)
{
    struct cm_dim dim;

    if (!find_axis(r, operand, &axis, &dim) || cm_dim_known(dim))
        return;
    const cm_value length = cm_require_length(r, operand, axis);
    cm_require_that(r, operand, cm_emit(r, "Equal", length, cm_emit_int64s(r, size)), reason);
}

static void require_alike(struct cm_require *r, int operand, int axis, int other, int other_axis,
                          bool or_one, const char *reason)
{
    struct cm_dim a, b;

    if (!find_axis(r, operand, &axis, &a) || !find_axis(r, other, &other_axis, &b) ||
        is_sure(a, b) || (or_one && cm_dim_known(a) && a.value == 1))
        return;
    const cm_value length = cm_require_length(r, operand, axis);
    cm_value met = cm_emit(r, "Equal", length, cm_require_length(r, other, other_axis));
    if (or_one)
        met = cm_emit(r, "Or", met, cm_emit(r, "Equal", length, cm_emit_int64s(r, 1)));
    cm_require_that(r, operand, met, reason);
}

void cm_require_same(struct cm_require *r, int operand, int axis, int other, int other_axis,
                     const char *reason)
{
    require_alike(r, operand, axis, other, other_axis, false, reason);
}

void cm_require_spread(struct cm_require *r, int operand, int axis, int other, int other_axis,
                       const char *reason)
{
    require_alike(r, operand, axis, other, other_axis, true, reason);
}

void cm_require_broadcast(struct cm_require *r, int operand, int other, const char *reason)
{
    const struct cm_type *type = cm_require_type(r, operand);

    for (int i = 1; type && i <= type->rank; i++)
        require_alike(r, operand, -i, other, -i, true, reason);
}

void cm_require_least(struct cm_require *r, int operand, int64_t least, const char *reason)
{
    struct cm_arena *arena = cm_builder_arena(&r->build);
    const struct cm_type *type = cm_require_type(r, operand);

    if (!type || cm_value_get(r->build.graph->module, r->in[operand])->fact.constant)
        return; /* the inference rule has seen it */
    const cm_value smallest = cm_emit_with(
        r, "ReduceMin", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), r->in[operand]);
    const cm_value bound = cm_emit_scalar(r, type->dtype, (double)least);
    cm_require_that(r, operand, cm_emit(r, "GreaterOrEqual", smallest, bound), reason);
}

enum cm_status cm_node_require(struct cm_node *node, struct cm_error *err)
{
    struct cm_require r = {.build = {.graph = node->graph, .before = node, .err = err},
                           .node = node};

    if (!node->op || !node->op->require)
        return CM_OK;
    r.in = CM_NEW_ARRAY(cm_builder_arena(&r.build), cm_value, (size_t)node->n_inputs + 1);
    for (int i = 0; i < node->n_inputs; i++)
        r.in[i] = node->inputs[i].value;
    node->op->require(&r);
    CM_TRY(r.build.status);
    for (int i = 0; i < node->n_inputs; i++)
        if (r.in[i] != node->inputs[i].value)
            cm_node_set_input(node, i, r.in[i]);
    return CM_OK;
}
