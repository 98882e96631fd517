/* Older forms of reductions and of what normalizes along an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

/* No axes meant all of them. */
static enum cm_status axes_to_attribute(struct cm_upgrade *down)
{
    struct cm_int64s axes;
    const bool noop = cm_node_int(&down->node, "noop_with_empty_axes") != 0;
    CM_TRY(cm_downgrade_ints(down, 1, "axes", &axes));
    cm_upgrade_drop(down, "noop_with_empty_axes");
    if (axes.count) {
        cm_upgrade_set_input(down, 1, 0);
        cm_upgrade_set(down, cm_attr_ints(cm_upgrade_arena(down), "axes", axes.count, axes.items));
        return CM_OK;
    }
    cm_upgrade_set_input(down, 1, 0);
    if (noop)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version %d a reduction without axes reduced all of them",
                               down->node.schema->since_version);
    return CM_OK;
}

/* The older rule sees a matrix, whose second axis is everything from `axis` on: the axis is moved
 * to the end and back. */
static enum cm_status softmax_13(struct cm_upgrade *down)
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

static const char axes[] = "axes are an attribute";
static const char from_front[] = "axes are counted from the front";
static const char matrix[] = "works on a matrix made of two halves";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"ArgMax", 11, cm_downgrade_one_axis, from_front},
    {"ArgMin", 11, cm_downgrade_one_axis, from_front},
    {"Hardmax", 11, cm_downgrade_one_axis, from_front},
    {"Hardmax", 13, softmax_13, matrix},
    {"LogSoftmax", 11, cm_downgrade_one_axis, from_front},
    {"LogSoftmax", 13, softmax_13, matrix},
    {"ReduceL1", 11, cm_downgrade_axes, from_front},
    {"ReduceL1", 18, axes_to_attribute, axes},
    {"ReduceL2", 11, cm_downgrade_axes, from_front},
    {"ReduceL2", 18, axes_to_attribute, axes},
    {"ReduceLogSum", 11, cm_downgrade_axes, from_front},
    {"ReduceLogSum", 18, axes_to_attribute, axes},
    {"ReduceLogSum", 28, cm_downgrade_nothing, NULL},
    {"ReduceLogSumExp", 11, cm_downgrade_axes, from_front},
    {"ReduceLogSumExp", 18, axes_to_attribute, axes},
    {"ReduceLogSumExp", 28, cm_downgrade_nothing, NULL},
    {"ReduceMax", 11, cm_downgrade_axes, from_front},
    {"ReduceMax", 18, axes_to_attribute, axes},
    {"ReduceMean", 11, cm_downgrade_axes, from_front},
    {"ReduceMean", 18, axes_to_attribute, axes},
    {"ReduceMin", 11, cm_downgrade_axes, from_front},
    {"ReduceMin", 18, axes_to_attribute, axes},
    {"ReduceProd", 11, cm_downgrade_axes, from_front},
    {"ReduceProd", 18, axes_to_attribute, axes},
    {"ReduceSum", 11, cm_downgrade_axes, from_front},
    {"ReduceSum", 13, axes_to_attribute, axes},
    {"ReduceSumSquare", 11, cm_downgrade_axes, from_front},
    {"ReduceSumSquare", 18, axes_to_attribute, axes},
    {"Softmax", 11, cm_downgrade_one_axis, from_front},
    {"Softmax", 13, softmax_13, matrix},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_reduce = CM_UPGRADE_TABLE("", rows);
