/* Old forms of network layers: dropout, pooling, recurrent cells, Gemm, normalization by
 * groups. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* Until version 6 is_test said whether a run is training; its default was that it is. The answer is
 * carried along as the attribute that a later version has for it. */
static enum cm_status is_test_7(struct cm_upgrade *up)
{
    if (!cm_node_int(&up->node, "is_test"))
        cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "training_mode", 1));
    cm_upgrade_drop(up, "is_test");
    return CM_OK;
}

/* Until version 13 training was asked for by wanting the statistics too. */
static enum cm_status batchnorm_train_7(struct cm_upgrade *up)
{
    static const bool all[] = {true, true, true, true, true};
    CM_TRY(is_test_7(up));
    if (up->form && up->opset < 14 && cm_upgrade_given(up, "training_mode")) {
        cm_upgrade_drop(up, "training_mode");
        cm_upgrade_set_outputs(up, 5, all);
    }
    return CM_OK;
}

static enum cm_status dropout_10(struct cm_upgrade *up)
{
    const enum cm_dtype type = cm_upgrade_type(up, 0)->dtype;
    CM_TRY(cm_upgrade_rest(up));
    if (up->n_outputs > 1 && up->outputs[1])
        up->outputs[1] = cm_upgrade_cast(up, up->outputs[1], type);
    return CM_OK;
}

/* Versions 7 and 10 speak of test mode only and copy; so does this one, when not told to train. */
static enum cm_status dropout_12(struct cm_upgrade *up)
{
    const double ratio = (double)cm_node_float(&up->node, "ratio");
    cm_upgrade_set_input(up, 1, cm_emit_scalar(up, CM_FLOAT, ratio));
    if (cm_upgrade_given(up, "training_mode"))
        cm_upgrade_set_input(up, 2, cm_emit_scalar(up, CM_BOOL, 1));
    cm_upgrade_drop(up, "training_mode");
    cm_upgrade_drop(up, "ratio");
    return CM_OK;
}

static enum cm_status gridsample_20(struct cm_upgrade *up)
{
    static const char *const words[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    const struct cm_str mode = cm_node_str(&up->node, "mode");
    for (size_t i = 0; i < 2; i++)
        if (cm_str_is(mode, words[i][0])) {
            cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "mode", cm_str(words[i][1])));
            break;
        }
    return CM_OK;
}

/* One number per group becomes one per channel: (G) to (G, C / G), in order. */
static cm_value per_channel(struct cm_upgrade *up, cm_value groups, cm_value width)
{
    const cm_value column = cm_emit(up, "Unsqueeze", groups, cm_emit_int64s(up, 1));
    const cm_value table = cm_emit(up, "Expand", column, width);
    return cm_emit(up, "Reshape", table, cm_emit_int64s(up, -1));
}

static enum cm_status groupnorm_21(struct cm_upgrade *up)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    const cm_value x = cm_upgrade_input(up, 0);
    const int64_t groups = cm_node_int(&up->node, "num_groups");
    if (groups < 1)
        return cm_upgrade_fail(up, CM_BAD_MODEL,
                               "attribute 'num_groups' is %lld, expected 1 or more",
                               (long long)groups);
    const cm_value channels = cm_emit_with(
        up, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 1), cm_attr_int(arena, "end", 2)),
        x);
    const cm_value width = cm_emit_with(up, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                        cm_emit_int64s(up, 1),
                                        cm_emit(up, "Div", channels, cm_emit_int64s(up, groups)));
    for (size_t i = 1; i <= 2; i++)
        cm_upgrade_set_input(up, i, per_channel(up, cm_upgrade_input(up, i), width));
    /* it was computed in the type of x; narrow ones lose nothing by float, the default */
    if (cm_upgrade_type(up, 0)->dtype == CM_DOUBLE)
        cm_upgrade_set(up, cm_attr_int(arena, "stash_type", CM_DOUBLE));
    return CM_OK;
}

static enum cm_status norm_2(struct cm_upgrade *up)
{
    const float p = cm_node_float(&up->node, "p");
    if (!(p >= 1 && p <= 1000000) || (float)(int)p != p)
        return cm_upgrade_fail(up, CM_UNSUPPORTED,
                               "p is %g, but version 2 and later allow whole numbers only",
                               (double)p);
    cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "p", (int64_t)p));
    return CM_OK;
}

/* C was broadcast only when asked; from the end, as since. */
static enum cm_status gemm_7(struct cm_upgrade *up)
{
    cm_upgrade_drop(up, "broadcast");
    return CM_OK;
}

/* Version 1 misspells its own default. */
static enum cm_status gru_3(struct cm_upgrade *up)
{
    if (cm_str_is(cm_node_str(&up->node, "direction"), "foward"))
        cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "direction", CM_STR("forward")));
    return CM_OK;
}

static enum cm_status recurrent_7(struct cm_upgrade *up)
{
    cm_upgrade_drop(up, "output_sequence");
    return CM_OK;
}

static enum cm_status roialign_16(struct cm_upgrade *up)
{
    cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "coordinate_transformation_mode",
                                   CM_STR("output_half_pixel")));
    return CM_OK;
}

static const char sequence[] = "whether the sequence is given is told by the outputs";
static const char whole[] = "p is a whole number";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"BatchNormalization", 6, cm_upgrade_drop_consumed, "consumed_inputs was a hint and is gone"},
    {"BatchNormalization", 7, batchnorm_train_7, "the number of outputs tells training from testing"},
    {"BatchNormalization", 9, cm_upgrade_batchnorm_7, "statistics are per channel only"},
    {"BatchNormalization", 14, cm_upgrade_batchnorm_9, "training is an attribute; three outputs"},
    {"Dropout", 6, cm_upgrade_drop_consumed, "consumed_inputs was a hint and is gone"},
    {"Dropout", 7, is_test_7, "no switch between training and testing"},
    {"Dropout", 10, dropout_10, "the mask is of booleans"},
    {"Dropout", 12, dropout_12, "ratio and training_mode are inputs"},
    {"GRU", 3, gru_3, "the default direction is spelled right"},
    {"GRU", 7, recurrent_7, sequence},
    {"Gemm", 7, gemm_7, "C is always broadcast"},
    {"GlobalLpPool", 2, norm_2, whole},
    {"GridSample", 20, gridsample_20, "modes are named for any number of axes"},
    {"GroupNormalization", 21, groupnorm_21, "scale and bias per channel, not per group"},
    {"InstanceNormalization", 6, cm_upgrade_drop_consumed, "consumed_inputs was a hint and is gone"},
    {"LSTM", 7, recurrent_7, sequence},
    {"LpPool", 2, norm_2, whole},
    {"RNN", 7, recurrent_7, sequence},
    {"RoiAlign", 16, roialign_16, "regions are moved by half a pixel by default"},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_nn = CM_UPGRADE_TABLE("", rows);
