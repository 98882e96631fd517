/* Channel shuffles as one Gather. A shuffle splits the channels into groups by a Reshape, exchanges
 * groups and members by a Transpose, and joins them again: as a choice of channels it can be
 * computed in whatever layout convolutions have. Slices of a shuffle choose from its operand. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/inference_shuffles.h"

#include "rewrite/permutation.h"

enum { MOST_CHANNELS = 1 << 16 };

struct shuffle {
    cm_value x;
    int64_t groups, members; /* of the channels */
};

static bool is_op(const struct cm_node *node, const char *op)
{
    return cm_node_is(node, op) && cm_node_is_current(node);
}

/* (n, groups, members, s..) from (n, channels, s..): only axis 1 is split. */
static bool splits_channels(const struct cm_type *whole, const struct cm_type *split)
{
    if (whole->kind != CM_KIND_TENSOR || split->kind != CM_KIND_TENSOR || whole->rank < 3 ||
        split->rank != whole->rank + 1 || !cm_dim_same(whole->dims[0], split->dims[0]))
        return false;
    const int64_t channels = whole->dims[1].value, groups = split->dims[1].value;
    if (groups < 1 || channels < 1 || channels > MOST_CHANNELS ||
        split->dims[2].value != channels / groups || channels % groups)
        return false;
    for (int i = 2; i < whole->rank; i++)
        if (!cm_dim_same(whole->dims[i], split->dims[i + 1]))
            return false;
    return true;
}

static bool exchanges_axes_1_and_2(const struct cm_node *transpose)
{
    struct cm_perm perm;
    if (!cm_perm_of_node(transpose, &perm))
        return false;
    for (int i = 0; i < perm.rank; i++)
        if (perm.axes[i] != (i == 1 ? 2 : i == 2 ? 1 : i))
            return false;
    return true;
}

static bool match(const struct cm_node *join, struct shuffle *out)
{
    if (!is_op(join, "Reshape"))
        return false;
    const struct cm_node *exchange = cm_value_get(join->module, cm_node_input(join, 0))->node;
    if (!is_op(exchange, "Transpose") || !exchanges_axes_1_and_2(exchange))
        return false;
    const struct cm_node *split = cm_value_get(join->module, cm_node_input(exchange, 0))->node;
    if (!is_op(split, "Reshape"))
        return false;
    const struct cm_type *x = cm_value_type(split->module, cm_node_input(split, 0));
    const struct cm_type *groups = cm_value_type(split->module, split->outputs[0]);
    const struct cm_type *y = cm_value_type(join->module, join->outputs[0]);
    if (!splits_channels(x, groups) ||
        !splits_channels(y, cm_value_type(exchange->module, exchange->outputs[0])) ||
        !cm_dim_same(x->dims[1], y->dims[1]))
        return false;
    *out = (struct shuffle){cm_node_input(split, 0), groups->dims[1].value, groups->dims[2].value};
    return true;
}

/* The one number of a constant list; false: it is not that. */
static bool read_one(const struct cm_node *node, int i, int64_t absent, int64_t *out)
{
    const cm_value value = cm_node_input(node, i);
    const struct cm_tensor *constant = cm_small_constant(node->module, value, 1);
    *out = absent;
    if (!value)
        return true;
    if (!constant || cm_tensor_count(constant) != 1 || constant->type != CM_INT64)
        return false;
    *out = ((const int64_t *)constant->data)[0];
    return true;
}

/* Does the node take channels [begin, end) of so many? */
static bool read_slice(const struct cm_node *node, int64_t channels, int64_t *begin, int64_t *end)
{
    int64_t axis, step;
    if (!is_op(node, "Slice") || !read_one(node, 1, 0, begin) || !read_one(node, 2, 0, end) ||
        !read_one(node, 3, 0, &axis) || !read_one(node, 4, 1, &step) || axis != 1 || step != 1)
        return false;
    if (*begin < 0)
        *begin += channels;
    if (*end < 0)
        *end += channels;
    *end = *end > channels ? channels : *end;
    return 0 <= *begin && *begin < *end;
}

/* Puts a choice of channels [begin, end) of the shuffle in place of a node. */
static enum cm_status choose(const struct shuffle *shuffle, struct cm_node *node, int64_t begin,
                             int64_t end, struct cm_error *err)
{
    struct cm_builder build = {.graph = node->graph, .before = node, .err = err};
    struct cm_arena *arena = cm_module_arena(node->module);
    int64_t *from = CM_NEW_ARRAY(arena, int64_t, (size_t)(end - begin));
    for (int64_t c = begin; c < end; c++)
        from[c - begin] = c % shuffle->groups * shuffle->members + c / shuffle->groups;
    const cm_value indices = cm_build_int64s(&build, (size_t)(end - begin), from);
    const cm_value chosen =
        cm_build(&build, &(struct cm_emission){.op = "Gather",
                                               CM_INPUTS(shuffle->x, indices),
                                               CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1))});
    CM_TRY(build.status);
    (void)cm_replace_value(node->graph, node->outputs[0], chosen); /* the node stays, unread */
    return CM_OK;
}

enum cm_status cm_inference_shuffle(struct cm_node *node, struct cm_error *err)
{
    struct shuffle shuffle;
    int64_t begin, end;
    if (!match(node, &shuffle))
        return CM_OK;
    const int64_t channels = shuffle.groups * shuffle.members;
    const struct cm_use *use = cm_value_get(node->module, node->outputs[0])->uses;
    while (use && use->node && use->graph == node->graph &&
           read_slice(use->node, channels, &begin, &end))
        use = use->next;
    if (use || cm_is_output(node->graph, node->outputs[0]))
        return choose(&shuffle, node, 0, channels, err);
    for (use = cm_value_get(node->module, node->outputs[0])->uses; use; use = use->next)
        if (read_slice(use->node, channels, &begin, &end))
            CM_TRY(choose(&shuffle, use->node, begin, end, err));
    return CM_OK;
}
