/* Older forms of network layers. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

/* Training was asked for by wanting the statistics too, all of them. */
static enum cm_status batchnorm_14(struct cm_upgrade *down)
{
    static const bool all[] = {true, true, true, true, true};
    if (cm_node_int(&down->node, "training_mode"))
        cm_upgrade_set_outputs(down, 5, all);
    cm_upgrade_drop(down, "training_mode");
    return CM_OK;
}

/* Until version 6 an attribute says whether a run is training, which it is by default. */
static enum cm_status batchnorm_7(struct cm_upgrade *down)
{
    cm_upgrade_set(down,
                   cm_attr_int(cm_upgrade_arena(down), "is_test", !cm_upgrade_wants(down, 1)));
    return CM_OK;
}

static enum cm_status batchnorm_6(struct cm_upgrade *down)
{
    static const int64_t hints[] = {0, 0, 0, 1, 1};
    cm_upgrade_set(down, cm_attr_ints(cm_upgrade_arena(down), "consumed_inputs", 5, hints));
    return CM_OK;
}

/* A training mode stays as an attribute, which versions 7 to 11 do not know, so that it is refused
 * unless the way goes on to version 6. */
static enum cm_status dropout_12(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_tensor *ratio, *training;
    CM_TRY(cm_downgrade_constant(down, 1, "ratio", &ratio));
    CM_TRY(cm_downgrade_constant(down, 2, "training_mode", &training));
    if (ratio && cm_tensor_count(ratio) == 1)
        cm_upgrade_set(down, cm_attr_float(arena, "ratio", (float)cm_tensor_real(ratio, 0)));
    if (training && cm_tensor_count(training) == 1 && cm_tensor_int(training, 0))
        cm_upgrade_set(down, cm_attr_int(arena, "training_mode", 1));
    if (cm_upgrade_given(down, "seed"))
        cm_upgrade_drop(down, "seed"); /* only training draws numbers */
    cm_upgrade_set_input(down, 1, 0);
    cm_upgrade_set_input(down, 2, 0);
    if (!cm_upgrade_wants(down, 1) || cm_upgrade_given(down, "training_mode"))
        return CM_OK;
    /* what the mask is outside of training, version 10 does not say */
    static bool yes[] = {true};
    const struct cm_shape one = CM_SHAPE(1);
    const struct cm_tensor kept = cm_tensor_borrow(CM_BOOL, &one, yes);
    const cm_value x = cm_upgrade_input(down, 0);
    cm_upgrade_set_outputs(down, 1, yes);
    CM_TRY(cm_upgrade_rest(down));
    down->outputs[1] =
        cm_emit_with(down, "ConstantOfShape", CM_ATTRIBUTES(cm_attr_tensor(arena, "value", &kept)),
                     cm_emit(down, "Shape", x));
    return CM_OK;
}

static enum cm_status dropout_10(struct cm_upgrade *down)
{
    if (!cm_upgrade_wants(down, 1))
        return CM_OK;
    CM_TRY(cm_upgrade_rest(down));
    down->outputs[1] = cm_upgrade_cast(down, down->outputs[1], CM_BOOL);
    return CM_OK;
}

static enum cm_status dropout_7(struct cm_upgrade *down)
{
    const bool training = cm_upgrade_given(down, "training_mode");
    cm_upgrade_drop(down, "training_mode");
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "is_test", !training));
    return CM_OK;
}

/* C is broadcast only when asked. */
static enum cm_status gemm_7(struct cm_upgrade *down)
{
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "broadcast", 1));
    return CM_OK;
}

static enum cm_status norm_2(struct cm_upgrade *down)
{
    const int64_t p = cm_node_int(&down->node, "p");
    cm_upgrade_set(down, cm_attr_float(cm_upgrade_arena(down), "p", (float)p));
    return CM_OK;
}

static enum cm_status gridsample_20(struct cm_upgrade *down)
{
    static const char *const words[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    const struct cm_str mode = cm_node_str(&down->node, "mode");
    if (cm_upgrade_rank(down, 0) != 4 && cm_upgrade_rank(down, 0) != CM_RANK_UNKNOWN)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 20 the operator took images only, of rank 4");
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (cm_str_is(mode, words[i][1])) {
            cm_upgrade_set(down, cm_attr_str(cm_upgrade_arena(down), "mode", cm_str(words[i][0])));
            break;
        }
    return CM_OK;
}

static enum cm_status recurrent_7(struct cm_upgrade *down)
{
    if (cm_upgrade_wants(down, 0))
        cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "output_sequence", 1));
    return CM_OK;
}

static enum cm_status roialign_16(struct cm_upgrade *down)
{
    CM_TRY(cm_downgrade_refuse_word(down, "coordinate_transformation_mode", "half_pixel"));
    cm_upgrade_drop(down, "coordinate_transformation_mode");
    return CM_OK;
}

static enum cm_status no_dilations(struct cm_upgrade *down)
{
    const struct cm_int64s list = cm_node_ints(&down->node, "dilations");
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i] != 1)
            return CM_OK; /* which is then refused by name */
    cm_upgrade_drop(down, "dilations");
    return CM_OK;
}

/* One scale for all. */
static enum cm_status quantize_13(struct cm_upgrade *down)
{
    const int rank = cm_upgrade_rank(down, 1);
    if (rank != 0)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 13 there was one scale for all, of rank 0");
    cm_upgrade_drop(down, "axis");
    return CM_OK;
}

/* With a block size of 0 there are no blocks. Which type the codes have is told by the zero point.
 */
static enum cm_status quantize_21(struct cm_upgrade *down)
{
    const struct cm_type *zero = cm_upgrade_type(down, 2);
    const int64_t type = cm_node_int(&down->node, "output_dtype");
    if (type && type == (zero ? (int64_t)zero->dtype : (int64_t)CM_UINT8))
        cm_upgrade_drop(down, "output_dtype");
    return CM_OK;
}

static enum cm_status dequantize_23(struct cm_upgrade *down)
{
    const struct cm_type *scale = cm_upgrade_type(down, 1);
    const int64_t type = cm_node_int(&down->node, "output_dtype");
    if (type && scale && type == (int64_t)scale->dtype)
        cm_upgrade_drop(down, "output_dtype");
    return CM_OK;
}

static const char sequence[] = "whether the sequence is given is told by an attribute";
static const char real[] = "p is a float";
static const char is_test[] = "is_test says whether the run is a training";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"AveragePool", 19, no_dilations, NULL},
    {"BatchNormalization", 6, batchnorm_6, "consumed_inputs is there"},
    {"BatchNormalization", 7, batchnorm_7, is_test},
    {"BatchNormalization", 9, cm_downgrade_nothing, NULL},
    {"BatchNormalization", 14, batchnorm_14, "training is told by the outputs"},
    {"DequantizeLinear", 13, quantize_13, NULL},
    {"DequantizeLinear", 23, dequantize_23, NULL},
    {"Dropout", 7, dropout_7, is_test},
    {"Dropout", 10, dropout_10, "the mask is of the data's type"},
    {"Dropout", 12, dropout_12, "ratio is an attribute"},
    {"GRU", 3, cm_downgrade_nothing, NULL},
    {"GRU", 7, recurrent_7, sequence},
    {"Gemm", 7, gemm_7, "that C is broadcast must be said"},
    {"GlobalLpPool", 2, norm_2, real},
    {"GridSample", 20, gridsample_20, "modes are named for images"},
    {"LSTM", 7, recurrent_7, sequence},
    {"LpPool", 2, norm_2, real},
    {"LpPool", 18, no_dilations, NULL},
    {"MaxPool", 10, no_dilations, NULL},
    {"QuantizeLinear", 13, quantize_13, NULL},
    {"QuantizeLinear", 21, quantize_21, NULL},
    {"RNN", 7, recurrent_7, sequence},
    {"RoiAlign", 16, roialign_16, "regions are not moved by half a pixel"},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_nn = CM_UPGRADE_TABLE("", rows);
