/* BatchNormalization before version 14: statistics per element of a sample, and a training mode
 * with five outputs. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* spatial = 0: every element of a sample has statistics of its own, so every element is a channel.
 * The parameters have the shape of a sample. */
enum cm_status cm_upgrade_batchnorm_7(struct cm_upgrade *up)
{
    const bool spatial = cm_node_int(&up->node, "spatial") != 0;
    const cm_value x = cm_upgrade_input(up, 0), scale = cm_upgrade_input(up, 1);

    cm_upgrade_drop(up, "spatial");
    if (spatial)
        return CM_OK;
    cm_upgrade_set_input(up, 0, cm_emit(up, "Flatten", x)); /* at axis 1 */
    for (size_t i = 1; i < 5; i++)
        cm_upgrade_set_input(
            up, i, cm_emit(up, "Reshape", cm_upgrade_input(up, i), cm_emit_int64s(up, -1)));
    CM_TRY(cm_upgrade_rest(up));
    for (size_t o = 0; o < up->n_outputs; o++)
        if (up->outputs[o])
            up->outputs[o] = cm_upgrade_reshape_like(up, up->outputs[o], o == 0 ? x : scale);
    return CM_OK;
}

/* The batch's own mean and variance, per channel. */
static void batch_statistics(struct cm_upgrade *up, cm_value x, cm_value *mean, cm_value *variance)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const cm_value cube = cm_emit(up, "Reshape", x, cm_emit_int64s(up, 0, 0, -1));
    const cm_value axes = cm_emit_int64s(up, 0, 2), one = cm_emit_int64s(up, -1);
    const cm_value centre = cm_emit(up, "ReduceMean", cube, axes);
    const cm_value apart = cm_emit(up, "Sub", cube, centre);
    const cm_value squares = cm_emit(up, "Mul", apart, apart);
    *mean = cm_emit(up, "Reshape", centre, one);
    *variance = cm_emit_with(up, "ReduceMean", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)),
                             squares, axes);
}

/* Versions 7 and 9 train when more than Y is asked for: Y, the running statistics, and those of the
 * batch, which version 14 no longer gives. */
enum cm_status cm_upgrade_batchnorm_9(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    bool wanted[5], training = cm_upgrade_given(up, "training_mode");
    for (size_t o = 0; o < 5; o++) {
        wanted[o] = cm_upgrade_wants(up, o);
        training = training || (o > 0 && wanted[o]);
    }
    cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "training_mode", training));
    cm_upgrade_set_outputs(up, training ? 3 : 1, wanted);
    if (!wanted[3] && !wanted[4])
        return CM_OK;
    CM_TRY(cm_upgrade_rest(up));
    cm_value saved[2];
    batch_statistics(up, x, &saved[0], &saved[1]);
    for (size_t o = 3; o < 5; o++)
        if (wanted[o])
            up->outputs[o] = saved[o - 3];
    return CM_OK;
}
