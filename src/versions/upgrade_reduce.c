/* Old forms of reductions and of what normalizes along an axis. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* No axes and an empty list of them both mean all. */
enum cm_status cm_upgrade_axes_to_input(struct cm_upgrade *up)
{
    if (cm_node_ints(&up->node, "axes").count)
        cm_upgrade_ints_to_input(up, "axes", 1);
    cm_upgrade_drop(up, "axes");
    return CM_OK;
}

/* The old rule saw a matrix: the axes before `axis` in one, the rest in the other, which is the one
 * normalized. */
static enum cm_status softmax_13(struct cm_upgrade *up)
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

static const char axes[] = "axes are an input";
static const char one_axis[] = "works along one axis, not on a matrix made of two halves";
static const char floats[] = "integers are no longer taken";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Hardmax", 13, softmax_13, one_axis},
    {"LogSoftmax", 13, softmax_13, one_axis},
    {"ReduceL1", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceL2", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceLogSum", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceLogSum", 28, cm_upgrade_through_double, floats},
    {"ReduceLogSumExp", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceLogSumExp", 28, cm_upgrade_through_double, floats},
    {"ReduceMax", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceMean", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceMin", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceProd", 18, cm_upgrade_axes_to_input, axes},
    {"ReduceSum", 13, cm_upgrade_axes_to_input, axes},
    {"ReduceSumSquare", 18, cm_upgrade_axes_to_input, axes},
    {"Softmax", 13, softmax_13, one_axis},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_reduce = CM_UPGRADE_TABLE("", rows);
