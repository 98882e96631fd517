/* How reductions changed, and what normalizes along an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* The old rule saw a matrix: the axes before `axis` in one, the rest in the other, which is the one
 * normalized. */
static enum cm_status softmax_13_up(struct cm_upgrade *up)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    int64_t axis = cm_node_int(&up->node, "axis");
    const int rank = cm_upgrade_rank(up, 0);
    const cm_value x = cm_upgrade_input(up, 0);

    if (axis < 0 && rank != CM_RANK_UNKNOWN)
        axis += rank;
    cm_upgrade_set(up, cm_attr_int(arena, "axis", -1));
    if (axis == -1 || (rank != CM_RANK_UNKNOWN && axis == rank - 1))
        return CM_OK;
    const cm_value matrix =
        cm_emit_with(up, "Flatten", CM_ATTRIBUTES(cm_attr_int(arena, "axis", axis)), x);
    cm_upgrade_set_input(up, 0, matrix);
    CM_TRY(cm_upgrade_rest(up));
    if (up->n_outputs && up->outputs[0])
        up->outputs[0] = cm_upgrade_reshape_like(up, up->outputs[0], x);
    return CM_OK;
}

/* No axes meant all of them. */
static enum cm_status without_axes_down(struct cm_upgrade *down)
{
    const bool noop = cm_node_int(&down->node, "noop_with_empty_axes") != 0;
    cm_upgrade_drop(down, "noop_with_empty_axes");
    if (cm_node_ints(&down->node, "axes").count)
        return CM_OK;
    cm_upgrade_drop(down, "axes");
    if (noop)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version %d a reduction without axes reduced all of them",
                               down->node.schema->since_version);
    return CM_OK;
}

/* The older rule sees a matrix, whose second axis is everything from `axis` on: the axis is moved
 * to the end and back. */
static enum cm_status softmax_13_down(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const int64_t given = cm_node_int(&down->node, "axis");
    const int rank = cm_upgrade_rank(down, 0);
    int64_t order[CM_MAX_RANK];

    if (rank == CM_RANK_UNKNOWN && given == -1 && down->opset >= 11) {
        cm_upgrade_set(down, cm_attr_int(arena, "axis", -1));
        return CM_OK;
    }
    if (rank == CM_RANK_UNKNOWN)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 13 the operator flattens its input at the axis, and "
                               "the rank of the input is not known");
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "axis %lld is out of range for rank %d",
                               (long long)given, rank);
    cm_upgrade_set(down, cm_attr_int(arena, "axis", rank - 1));
    if (axis == rank - 1)
        return CM_OK;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[axis] = rank - 1;
    order[rank - 1] = axis;
    const struct cm_attribute_proto perm = cm_attr_ints(arena, "perm", (size_t)rank, order);
    cm_upgrade_set_input(
        down, 0, cm_emit_with(down, "Transpose", CM_ATTRIBUTES(perm), cm_upgrade_input(down, 0)));
    CM_TRY(cm_upgrade_rest(down));
    if (down->n_outputs && down->outputs[0])
        down->outputs[0] = cm_emit_with(down, "Transpose", CM_ATTRIBUTES(perm), down->outputs[0]);
    return CM_OK;
}

#define AXES_TO_INPUT                                                                              \
    .moved = {{"axes", 1, CM_MOVED_LIST_OR_ALL}}, .up_note = "axes are an input",                  \
    .down = without_axes_down, .down_note = "axes are an attribute"

static const struct cm_version_row rows[] = {
    {"Hardmax LogSoftmax Softmax", 13, .up = softmax_13_up,
     .up_note = "works along one axis, not on a matrix made of two halves", .down = softmax_13_down,
     .down_note = "works on a matrix made of two halves"},
    {"ArgMax ArgMin Hardmax LogSoftmax ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
     "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax",
     11, .down = cm_downgrade_axes, .down_note = "axes are counted from the front"},
    {"ReduceSum", 13, AXES_TO_INPUT},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSumSquare",
     18, AXES_TO_INPUT, /* without axes, all of them are meant in both */
     .same_where_legal = true},
    {"ReduceLogSum ReduceLogSumExp", 28, .up = cm_upgrade_through_double,
     .up_note = "integers are no longer taken", .same_where_legal = true,
     .down = cm_downgrade_nothing},
};
const struct cm_version_table cm_changes_reduce = CM_VERSION_TABLE("", rows);
