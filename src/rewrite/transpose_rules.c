/* One row per operator that does its work along axes; elementwise operators need none. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/transpose_rules.h"

#include "rewrite/pass.h"

/* The integers of a constant operand of rank 0 or 1; false when it is none, or longer than room. A
 * file that cannot be read is refused where its contents are needed. */
static bool constant_list(const struct cm_node *node, int operand, int64_t *items, size_t room,
                          size_t *count)
{
    const struct cm_tensor *tensor =
        cm_small_constant(node->module, cm_node_input(node, operand), (int64_t)room);

    if (!tensor || tensor->shape.rank > 1 || (tensor->type != CM_INT64 && tensor->type != CM_INT32))
        return false;
    *count = (size_t)cm_tensor_count(tensor);
    for (size_t i = 0; i < *count; i++)
        items[i] = cm_tensor_int(tensor, (int64_t)i);
    return true;
}

static const struct cm_type *operand_type(const struct cm_node *node, int operand)
{
    const cm_value value = cm_node_input(node, operand);
    return value ? cm_value_get(node->module, value)->fact.type : NULL;
}

/* Replaces every axis of the list by where it is in the operand. */
static bool move_axes(struct cm_transposed *t, const struct cm_perm *p, int rank)
{
    for (size_t i = 0; i < t->count; i++) {
        int axis;
        if (!cm_axis_fix(t->items[i], rank, &axis))
            return false;
        t->items[i] = p->axes[axis];
    }
    return true;
}

/* What is left of p without these axes of the operand: `gone` marks axes of what is transposed. */
static struct cm_perm without_axes(const struct cm_perm *p, const bool *gone)
{
    struct cm_perm out = {0};
    int place[CM_MAX_RANK], next = 0;
    bool gone_below[CM_MAX_RANK];

    for (int a = 0; a < p->rank; a++)
        gone_below[p->axes[a]] = gone[a];
    for (int a = 0; a < p->rank; a++)
        place[a] = gone_below[a] ? -1 : next++;
    for (int a = 0; a < p->rank; a++)
        if (!gone[a])
            out.axes[out.rank++] = (unsigned char)place[p->axes[a]];
    return out;
}

static bool mark_axes(const int64_t *items, size_t count, int rank, bool *marked)
{
    for (size_t i = 0; i < count; i++) {
        int axis;
        if (!cm_axis_fix(items[i], rank, &axis) || marked[axis])
            return false;
        marked[axis] = true;
    }
    return true;
}

/* ---- rules ---- */

typedef bool through_fn(const struct cm_node *node, const struct cm_perm *p,
                        struct cm_transposed *t);

static bool through_axis(const struct cm_node *node, const struct cm_perm *p,
                         struct cm_transposed *t)
{
    int axis;
    if (!cm_axis_fix(cm_node_int(node, "axis"), p->rank, &axis))
        return false;
    t->has_axis = true;
    t->axis = p->axes[axis];
    return true;
}

static bool through_arg(const struct cm_node *node, const struct cm_perm *p,
                        struct cm_transposed *t)
{
    bool gone[CM_MAX_RANK] = {0};
    const int64_t axis = cm_node_int(node, "axis");
    if (!through_axis(node, p, t) || !mark_axes(&axis, 1, p->rank, gone))
        return false;
    if (!cm_node_int(node, "keepdims"))
        t->out = without_axes(p, gone);
    return true;
}

/* Sums are added up in another order then, as backends do anyway: results may differ in rounding.
 */
static bool through_reduce(const struct cm_node *node, const struct cm_perm *p,
                           struct cm_transposed *t)
{
    bool gone[CM_MAX_RANK] = {0};
    size_t count = 0;

    if (cm_node_input(node, 1) && !constant_list(node, 1, t->items, CM_MAX_RANK, &count))
        return false;
    if (!count && cm_node_int(node, "noop_with_empty_axes"))
        return true;
    if (!mark_axes(t->items, count, p->rank, gone))
        return false;
    if (count) {
        t->operand = 1;
        t->count = count;
    }
    for (int a = 0; a < p->rank && !count; a++)
        gone[a] = true;
    if (!cm_node_int(node, "keepdims"))
        t->out = without_axes(p, gone);
    return move_axes(t, p, p->rank);
}

static bool through_squeeze(const struct cm_node *node, const struct cm_perm *p,
                            struct cm_transposed *t)
{
    bool gone[CM_MAX_RANK] = {0};
    if (!constant_list(node, 1, t->items, CM_MAX_RANK, &t->count) ||
        !mark_axes(t->items, t->count, p->rank, gone))
        return false;
    t->operand = 1;
    t->out = without_axes(p, gone);
    return move_axes(t, p, p->rank);
}

/* New axes come where they came before; the others keep their order among themselves. */
static bool through_unsqueeze(const struct cm_node *node, const struct cm_perm *p,
                              struct cm_transposed *t)
{
    bool new[CM_MAX_RANK] = {0};
    unsigned char old[CM_MAX_RANK];
    int n_old = 0;

    if (!constant_list(node, 1, t->items, CM_MAX_RANK, &t->count) ||
        p->rank + (int)t->count > CM_MAX_RANK)
        return false;
    t->out.rank = p->rank + (int)t->count;
    if (!mark_axes(t->items, t->count, t->out.rank, new))
        return false;
    for (int a = 0; a < t->out.rank; a++)
        if (!new[a])
            old[n_old++] = (unsigned char)a;
    for (int a = 0, i = 0; a < t->out.rank; a++)
        t->out.axes[a] = new[a] ? (unsigned char)a : old[p->axes[i++]];
    return true; /* the list of axes is the same */
}

static bool through_slice(const struct cm_node *node, const struct cm_perm *p,
                          struct cm_transposed *t)
{
    const struct cm_type *starts = operand_type(node, 1);

    if (cm_node_input(node, 3)) {
        if (!constant_list(node, 3, t->items, CM_MAX_RANK, &t->count))
            return false;
    } else {
        if (starts->rank != 1 || !cm_dim_known(starts->dims[0]) || starts->dims[0].value > p->rank)
            return false;
        t->count = (size_t)starts->dims[0].value;
        for (size_t i = 0; i < t->count; i++)
            t->items[i] = (int64_t)i;
    }
    t->operand = 3;
    t->type = starts->dtype;
    return move_axes(t, p, p->rank);
}

static bool through_pad(const struct cm_node *node, const struct cm_perm *p,
                        struct cm_transposed *t)
{
    if (cm_node_input(node, 3)) {
        t->operand = 3;
        t->type = operand_type(node, 3)->dtype;
        return constant_list(node, 3, t->items, CM_MAX_RANK, &t->count) && move_axes(t, p, p->rank);
    }
    int64_t pads[2 * CM_MAX_RANK];
    if (!constant_list(node, 1, pads, 2 * CM_MAX_RANK, &t->count) ||
        t->count != 2 * (size_t)p->rank)
        return false;
    t->operand = 1;
    for (int a = 0; a < p->rank; a++) {
        t->items[p->axes[a]] = pads[a];
        t->items[p->rank + p->axes[a]] = pads[p->rank + a];
    }
    return true;
}

/* Operand 1 has a number per axis, fewer where leading ones are 1. */
static bool through_sizes(const struct cm_node *node, const struct cm_perm *p,
                          struct cm_transposed *t)
{
    int64_t sizes[CM_MAX_RANK];
    size_t count;

    if (!constant_list(node, 1, sizes, (size_t)p->rank, &count))
        return false;
    t->operand = 1;
    t->count = (size_t)p->rank;
    const int missing = p->rank - (int)count;
    for (int a = 0; a < p->rank; a++)
        t->items[p->axes[a]] = a < missing ? 1 : sizes[a - missing];
    return true;
}

static bool through_cumsum(const struct cm_node *node, const struct cm_perm *p,
                           struct cm_transposed *t)
{
    if (!constant_list(node, 1, t->items, 1, &t->count) || t->count != 1)
        return false;
    t->operand = 1;
    t->type = operand_type(node, 1)->dtype;
    t->is_scalar = operand_type(node, 1)->rank == 0;
    return move_axes(t, p, p->rank);
}

/* Axes from `axis` on are one row: they must stay where they are. */
static bool through_layer_norm(const struct cm_node *node, const struct cm_perm *p,
                               struct cm_transposed *t)
{
    int axis;
    if (!cm_axis_fix(cm_node_int(node, "axis"), p->rank, &axis))
        return false;
    for (int a = axis; a < p->rank; a++)
        if (p->axes[a] != a)
            return false;
    t->has_axis = true;
    t->axis = axis;
    return true;
}

/* One scale for all elements, or one per index along an axis. */
static bool through_quantize(const struct cm_node *node, const struct cm_perm *p,
                             struct cm_transposed *t)
{
    const struct cm_type *scale = operand_type(node, 1);
    if (scale->rank == 0)
        return true;
    return scale->rank == 1 && through_axis(node, p, t);
}

static bool through_batch_norm(const struct cm_node *node, const struct cm_perm *p,
                               struct cm_transposed *t)
{
    (void)t;
    return !cm_node_int(node, "training_mode") && p->rank > 1 && p->axes[1] == 1;
}

static const struct row {
    const char *op;
    through_fn *through;
    bool all; /* all operands are transposed, not just the first */
} rows[] = {
    {"ArgMax", through_arg, false},
    {"ArgMin", through_arg, false},
    {"BatchNormalization", through_batch_norm, false},
    {"Concat", through_axis, true},
    {"CumSum", through_cumsum, false},
    {"DequantizeLinear", through_quantize, false},
    {"Expand", through_sizes, false},
    {"Hardmax", through_axis, false},
    {"LayerNormalization", through_layer_norm, false},
    {"LogSoftmax", through_axis, false},
    {"LpNormalization", through_axis, false},
    {"Pad", through_pad, false},
    {"QuantizeLinear", through_quantize, false},
    {"RMSNormalization", through_layer_norm, false},
    {"ReduceL1", through_reduce, false},
    {"ReduceL2", through_reduce, false},
    {"ReduceLogSum", through_reduce, false},
    {"ReduceLogSumExp", through_reduce, false},
    {"ReduceMax", through_reduce, false},
    {"ReduceMean", through_reduce, false},
    {"ReduceMin", through_reduce, false},
    {"ReduceProd", through_reduce, false},
    {"ReduceSum", through_reduce, false},
    {"ReduceSumSquare", through_reduce, false},
    {"Slice", through_slice, false},
    {"Softmax", through_axis, false},
    {"Split", through_axis, false},
    {"Squeeze", through_squeeze, false},
    {"Tile", through_sizes, false},
    {"TopK", through_axis, false},
    {"Unsqueeze", through_unsqueeze, false},
};

static const struct row *find_row(const struct cm_node *node)
{
    for (size_t i = 0; !node->domain.size && i < CM_COUNT(rows); i++)
        if (cm_str_is(node->op_type, rows[i].op))
            return &rows[i];
    return NULL;
}

static bool is_elementwise(const struct cm_node *node)
{
    return node->op && node->op->elementwise;
}

bool cm_transpose_moves(const struct cm_node *node, int i)
{
    const struct row *row = find_row(node);
    return i == 0 || (row ? row->all : is_elementwise(node));
}

bool cm_transpose_through(const struct cm_node *node, const struct cm_perm *p,
                          struct cm_transposed *out)
{
    const unsigned excluded = CM_RANDOM | CM_OUTPUT_SIZE_AT_RUN | CM_REPLACED | CM_REGION;

    if (!node->op || node->op->effects & excluded || node->n_bodies || !cm_node_is_current(node))
        return false;
    const struct row *row = find_row(node);
    *out = (struct cm_transposed){.out = *p, .operand = -1, .type = CM_INT64};
    return row ? row->through(node, p, out) : is_elementwise(node);
}
