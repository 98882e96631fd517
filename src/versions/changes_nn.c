/* How network layers changed: batch normalization, dropout, pooling, recurrent cells, Gemm,
 * normalization by groups, quantization. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* Until version 6 is_test said whether a run is training; its default was that it is. The answer is
 * carried along as the attribute that a later version has for it. */
static enum cm_status is_test_7_up(struct cm_upgrade *up)
{
    if (!cm_node_int(&up->node, "is_test"))
        cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "training_mode", 1));
    cm_upgrade_drop(up, "is_test");
    return CM_OK;
}

/* Until version 13 training was asked for by wanting the statistics too. */
static enum cm_status batchnorm_train_7_up(struct cm_upgrade *up)
{
    static const bool all[] = {true, true, true, true, true};
    CM_TRY(is_test_7_up(up));
    if (up->form && up->opset < 14 && cm_upgrade_given(up, "training_mode")) {
        cm_upgrade_drop(up, "training_mode");
        cm_upgrade_set_outputs(up, 5, all);
    }
    return CM_OK;
}

static enum cm_status dropout_10_up(struct cm_upgrade *up)
{
    const enum cm_dtype type = cm_upgrade_type(up, 0)->dtype;
    CM_TRY(cm_upgrade_rest(up));
    if (up->n_outputs > 1 && up->outputs[1])
        up->outputs[1] = cm_upgrade_cast(up, up->outputs[1], type);
    return CM_OK;
}

/* Versions 7 and 10 speak of test mode only and copy; so does this one, when not told to train. */
static enum cm_status dropout_12_up(struct cm_upgrade *up)
{
    const double ratio = (double)cm_node_float(&up->node, "ratio");
    cm_upgrade_set_input(up, 1, cm_emit_scalar(up, CM_FLOAT, ratio));
    if (cm_upgrade_given(up, "training_mode"))
        cm_upgrade_set_input(up, 2, cm_emit_scalar(up, CM_BOOL, 1));
    cm_upgrade_drop(up, "training_mode");
    cm_upgrade_drop(up, "ratio");
    return CM_OK;
}

/* One number per group becomes one per channel: (G) to (G, C / G), in order. */
static cm_value per_channel(struct cm_upgrade *up, cm_value groups, cm_value width)
{
    const cm_value column = cm_emit(up, "Unsqueeze", groups, cm_emit_int64s(up, 1));
    const cm_value table = cm_emit(up, "Expand", column, width);
    return cm_emit(up, "Reshape", table, cm_emit_int64s(up, -1));
}

static enum cm_status groupnorm_21_up(struct cm_upgrade *up)
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

static enum cm_status norm_2_up(struct cm_upgrade *up)
{
    const float p = cm_node_float(&up->node, "p");
    if (!(p >= 1 && p <= 1000000) || (float)(int)p != p)
        return cm_upgrade_fail(up, CM_UNSUPPORTED,
                               "p is %g, but version 2 and later allow whole numbers only",
                               (double)p);
    cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "p", (int64_t)p));
    return CM_OK;
}

/* Version 1 misspells its own default. */
static enum cm_status gru_3_up(struct cm_upgrade *up)
{
    if (cm_str_is(cm_node_str(&up->node, "direction"), "foward"))
        cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "direction", CM_STR("forward")));
    return CM_OK;
}

static enum cm_status roialign_16_up(struct cm_upgrade *up)
{
    cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "coordinate_transformation_mode",
                                   CM_STR("output_half_pixel")));
    return CM_OK;
}

/* spatial = 0: every element of a sample has statistics of its own, so every element is a channel.
 * The parameters have the shape of a sample. */
static enum cm_status batchnorm_spatial_9_up(struct cm_upgrade *up)
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
static enum cm_status batchnorm_14_up(struct cm_upgrade *up)
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

/* Training was asked for by wanting the statistics too, all of them. */
static enum cm_status batchnorm_14_down(struct cm_upgrade *down)
{
    static const bool all[] = {true, true, true, true, true};
    if (cm_node_int(&down->node, "training_mode"))
        cm_upgrade_set_outputs(down, 5, all);
    cm_upgrade_drop(down, "training_mode");
    return CM_OK;
}

/* Until version 6 an attribute says whether a run is training, which it is by default. */
static enum cm_status batchnorm_7_down(struct cm_upgrade *down)
{
    cm_upgrade_set(down,
                   cm_attr_int(cm_upgrade_arena(down), "is_test", !cm_upgrade_wants(down, 1)));
    return CM_OK;
}

static enum cm_status batchnorm_6_down(struct cm_upgrade *down)
{
    static const int64_t hints[] = {0, 0, 0, 1, 1};
    cm_upgrade_set(down, cm_attr_ints(cm_upgrade_arena(down), "consumed_inputs", 5, hints));
    return CM_OK;
}

/* A training mode stays as an attribute, which versions 7 to 11 do not know, so that it is refused
 * unless the way goes on to version 6. */
static enum cm_status dropout_12_down(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_tensor *training;
    CM_TRY(cm_downgrade_constant(down, 2, "training_mode", &training));
    CM_TRY(cm_downgrade_real(down, 1, "ratio"));
    if (training && cm_tensor_count(training) == 1 && cm_tensor_int(training, 0))
        cm_upgrade_set(down, cm_attr_int(arena, "training_mode", 1));
    if (cm_upgrade_given(down, "seed"))
        cm_upgrade_drop(down, "seed"); /* only training draws numbers */
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

static enum cm_status dropout_10_down(struct cm_upgrade *down)
{
    if (!cm_upgrade_wants(down, 1))
        return CM_OK;
    CM_TRY(cm_upgrade_rest(down));
    down->outputs[1] = cm_upgrade_cast(down, down->outputs[1], CM_BOOL);
    return CM_OK;
}

static enum cm_status dropout_7_down(struct cm_upgrade *down)
{
    const bool training = cm_upgrade_given(down, "training_mode");
    cm_upgrade_drop(down, "training_mode");
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "is_test", !training));
    return CM_OK;
}

/* C is broadcast only when asked. */
static enum cm_status gemm_7_down(struct cm_upgrade *down)
{
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "broadcast", 1));
    return CM_OK;
}

static enum cm_status norm_2_down(struct cm_upgrade *down)
{
    const int64_t p = cm_node_int(&down->node, "p");
    cm_upgrade_set(down, cm_attr_float(cm_upgrade_arena(down), "p", (float)p));
    return CM_OK;
}

static enum cm_status gridsample_20(struct cm_upgrade *up, int from)
{
    static const char *const words[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};
    const struct cm_str mode = cm_node_str(&up->node, "mode");
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (cm_str_is(mode, words[i][from])) {
            cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), "mode", cm_str(words[i][!from])));
            break;
        }
    return CM_OK;
}

static enum cm_status gridsample_20_up(struct cm_upgrade *up)
{
    return gridsample_20(up, 0);
}

static enum cm_status gridsample_20_down(struct cm_upgrade *down)
{
    if (cm_upgrade_rank(down, 0) != 4 && cm_upgrade_rank(down, 0) != CM_RANK_UNKNOWN)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 20 the operator took images only, of rank 4");
    return gridsample_20(down, 1);
}

static enum cm_status recurrent_7_down(struct cm_upgrade *down)
{
    if (cm_upgrade_wants(down, 0))
        cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "output_sequence", 1));
    return CM_OK;
}

static enum cm_status roialign_16_down(struct cm_upgrade *down)
{
    cm_upgrade_drop(down, "coordinate_transformation_mode");
    return CM_OK;
}

static enum cm_status no_dilations_down(struct cm_upgrade *down)
{
    const struct cm_int64s list = cm_node_ints(&down->node, "dilations");
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i] != 1)
            return CM_OK; /* which is then refused by name */
    cm_upgrade_drop(down, "dilations");
    return CM_OK;
}

/* One scale for all. */
static enum cm_status quantize_13_down(struct cm_upgrade *down)
{
    const int rank = cm_upgrade_rank(down, 1);
    if (rank != 0)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 13 there was one scale for all, of rank 0");
    cm_upgrade_drop(down, "axis");
    return CM_OK;
}

/* With a block size of 0 there are no blocks. The zero point says which type the codes have.
 */
static enum cm_status quantize_21_down(struct cm_upgrade *down)
{
    const struct cm_type *zero = cm_upgrade_type(down, 2);
    const int64_t type = cm_node_int(&down->node, "output_dtype");
    if (type && type == (zero ? (int64_t)zero->dtype : (int64_t)CM_UINT8))
        cm_upgrade_drop(down, "output_dtype");
    return CM_OK;
}

static enum cm_status dequantize_23_down(struct cm_upgrade *down)
{
    const struct cm_type *scale = cm_upgrade_type(down, 1);
    const int64_t type = cm_node_int(&down->node, "output_dtype");
    if (type && scale && type == (int64_t)scale->dtype)
        cm_upgrade_drop(down, "output_dtype");
    return CM_OK;
}

static const char consumed[] = "consumed_inputs was a hint and is gone";
static const char is_test[] = "is_test says whether the run is a training";

static const struct cm_version_row rows[] = {
    {"AveragePool", 19, .down = no_dilations_down},
    {"BatchNormalization", 6, .gone = "consumed_inputs", .up_note = consumed,
     .down = batchnorm_6_down, .down_note = "consumed_inputs is there"},
    {"BatchNormalization", 7, .up = batchnorm_train_7_up,
     .up_note = "the number of outputs tells training from testing", .down = batchnorm_7_down,
     .down_note = is_test},
    {"BatchNormalization", 9, .up = batchnorm_spatial_9_up,
     .up_note = "statistics are per channel only", .down = cm_downgrade_nothing},
    {"BatchNormalization", 14, .up = batchnorm_14_up,
     .up_note = "training is an attribute; three outputs", .down = batchnorm_14_down,
     .down_note = "the outputs say whether it trains"},
    {"DequantizeLinear", 23, .down = dequantize_23_down},
    {"DequantizeLinear QuantizeLinear", 13, .down = quantize_13_down},
    {"Dropout InstanceNormalization", 6, .gone = "consumed_inputs", .up_note = consumed},
    {"Dropout", 7, .up = is_test_7_up, .up_note = "no switch between training and testing",
     .down = dropout_7_down, .down_note = is_test},
    {"Dropout", 10, .up = dropout_10_up, .up_note = "the mask is of booleans",
     .down = dropout_10_down, .down_note = "the mask is of the data's type"},
    {"Dropout", 12, .up = dropout_12_up, .up_note = "ratio and training_mode are inputs",
     .down = dropout_12_down, .down_note = "ratio is an attribute"},
    {"GRU", 3, .up = gru_3_up, .up_note = "the default direction is spelled right",
     .down = cm_downgrade_nothing},
    {"GRU LSTM RNN", 7, .gone = "output_sequence",
     .up_note = "the outputs say whether the sequence is given", .down = recurrent_7_down,
     .down_note = "an attribute says whether the sequence is given"},
    {"Gemm", 7, .gone = "broadcast", .up_note = "C is always broadcast", .down = gemm_7_down,
     .down_note = "that C is broadcast must be said"},
    {"GlobalLpPool LpPool", 2, .up = norm_2_up, .up_note = "p is a whole number",
     .down = norm_2_down, .down_note = "p is a float"},
    {"GridSample", 20, .up = gridsample_20_up, .up_note = "modes are named for any number of axes",
     .down = gridsample_20_down, .down_note = "modes are named for images"},
    {"GroupNormalization", 21, .up = groupnorm_21_up,
     .up_note = "scale and bias per channel, not per group"},
    {"LpPool", 18, .down = no_dilations_down},
    {"MaxPool", 10, .down = no_dilations_down},
    {"QuantizeLinear", 21, .down = quantize_21_down},
    {"RoiAlign", 16, .up = roialign_16_up,
     .up_note = "regions are moved by half a pixel by default", .down = roialign_16_down,
     .down_note = "regions are not moved by half a pixel"},
};
const struct cm_version_table cm_changes_nn = CM_VERSION_TABLE("", rows);
