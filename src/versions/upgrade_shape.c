/* Old forms of operators that move, cut and index: attributes that became inputs, mostly. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

static enum cm_status concat_4(struct cm_upgrade *up)
{
    if (!cm_upgrade_given(up, "axis"))
        cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "axis", 1));
    return CM_OK;
}

static enum cm_status dft_20(struct cm_upgrade *up)
{
    const int64_t axis = cm_node_int(&up->node, "axis");
    cm_upgrade_drop(up, "axis");
    cm_upgrade_set_input(up, 2, cm_build_int64(&up->build, axis));
    return CM_OK;
}

/* Negative indices matched nothing; now they count from the end. The depth itself is the nearest
 * number that matches nothing. */
static enum cm_status onehot_11(struct cm_upgrade *up)
{
    const enum cm_dtype_class kind = cm_dtype_info(cm_upgrade_type(up, 0)->dtype)->kind;
    if (kind == CM_CLASS_UNSIGNED || kind == CM_CLASS_BOOL)
        return CM_OK;
    const cm_value indices = cm_upgrade_cast(up, cm_upgrade_input(up, 0), CM_INT64);
    const cm_value depth = cm_upgrade_cast(up, cm_upgrade_input(up, 1), CM_INT64);
    const cm_value scalar = cm_emit(up, "Reshape", depth, cm_upgrade_int64s(up, 0, NULL));
    const cm_value negative = cm_emit(up, "Less", indices, cm_build_int64(&up->build, 0));
    cm_upgrade_set_input(up, 0, cm_emit(up, "Where", negative, scalar, indices));
    return CM_OK;
}

static enum cm_status pad_2(struct cm_upgrade *up)
{
    cm_upgrade_rename(up, "paddings", "pads");
    return CM_OK;
}

static enum cm_status pad_11(struct cm_upgrade *up)
{
    const double value = (double)cm_node_float(&up->node, "value");
    cm_upgrade_ints_to_input(up, "pads", 1);
    cm_upgrade_drop(up, "value");
    if (value != 0)
        cm_upgrade_set_input(up, 2, cm_emit_scalar_like(up, cm_upgrade_input(up, 0), value));
    return CM_OK;
}

static enum cm_status reshape_5(struct cm_upgrade *up)
{
    cm_upgrade_drop(up, "consumed_inputs");
    if (!cm_upgrade_given(up, "shape"))
        return cm_upgrade_fail(up, CM_BAD_MODEL, "Reshape version 1 needs attribute 'shape'");
    cm_upgrade_ints_to_input(up, "shape", 1);
    return CM_OK;
}

static enum cm_status scatter_11(struct cm_upgrade *up)
{
    return cm_upgrade_become(up, "ScatterElements", 11);
}

static enum cm_status slice_10(struct cm_upgrade *up)
{
    cm_upgrade_ints_to_input(up, "starts", 1);
    cm_upgrade_ints_to_input(up, "ends", 2);
    cm_upgrade_ints_to_input(up, "axes", 3);
    return CM_OK;
}

/* In versions 2 to 12 the lengths are an attribute. */
static enum cm_status lengths_to_attribute(struct cm_upgrade *up)
{
    const struct cm_tensor *lengths = NULL;
    const cm_value given = cm_upgrade_input(up, 1);
    if (!given)
        return CM_OK;
    CM_TRY(cm_value_constant(up->build.graph->module, given, &lengths, up->build.err));
    if (!lengths)
        return cm_upgrade_fail(
            up, CM_UNSUPPORTED,
            "Split version 2 needs 'split' to be constant, which it is not here");
    const size_t count = (size_t)cm_tensor_count(lengths);
    int64_t *items = CM_NEW_ARRAY(cm_upgrade_arena(up), int64_t, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (int64_t)cm_tensor_real(lengths, (int64_t)i);
    cm_upgrade_set(up, cm_attr_ints(cm_upgrade_arena(up), "split", count, items));
    cm_upgrade_set_input(up, 1, 0);
    return CM_OK;
}

/* The lengths could be an input once, of the type of the data, and are one again since 13; so they
 * are put there now. */
static enum cm_status split_2(struct cm_upgrade *up)
{
    if (!cm_upgrade_given(up, "axis"))
        return cm_upgrade_fail(
            up, CM_UNSUPPORTED,
            "Split version 1 needs attribute 'axis', for which ONNX defines no default");
    if (up->form && up->opset < 13)
        return lengths_to_attribute(up);
    if (cm_upgrade_input(up, 1))
        cm_upgrade_set_input(up, 1, cm_upgrade_cast(up, cm_upgrade_input(up, 1), CM_INT64));
    return CM_OK;
}

static enum cm_status split_13(struct cm_upgrade *up)
{
    if (!cm_upgrade_input(up, 1) && cm_node_ints(&up->node, "split").count)
        cm_upgrade_ints_to_input(up, "split", 1);
    cm_upgrade_drop(up, "split");
    return CM_OK;
}

static enum cm_status split_18(struct cm_upgrade *up)
{
    if (!cm_upgrade_input(up, 1))
        cm_upgrade_set(
            up, cm_attr_int(cm_upgrade_arena(up), "num_outputs", (int64_t)up->spec->n_outputs));
    return CM_OK;
}

/* (input, tiles, axis) to (input, repeats): ones, but tiles at the axis. */
static enum cm_status tile_6(struct cm_upgrade *up)
{
    const cm_value x = cm_upgrade_input(up, 0);
    const struct cm_tensor *count, *along;
    const int known = cm_upgrade_rank(up, 0);
    CM_TRY(
        cm_value_constant(up->build.graph->module, cm_upgrade_input(up, 1), &count, up->build.err));
    CM_TRY(
        cm_value_constant(up->build.graph->module, cm_upgrade_input(up, 2), &along, up->build.err));
    if (known != CM_RANK_UNKNOWN && count && along && cm_tensor_count(count) == 1 &&
        cm_tensor_count(along) == 1) {
        int64_t repeats[CM_MAX_RANK];
        for (int i = 0; i < known; i++)
            repeats[i] = i == (int)cm_tensor_real(along, 0) ? (int64_t)cm_tensor_real(count, 0) : 1;
        cm_upgrade_set_input(up, 1, cm_upgrade_int64s(up, (size_t)known, repeats));
        cm_upgrade_set_input(up, 2, 0);
        return CM_OK;
    }
    const cm_value one = cm_emit_int64s(up, 1);
    const cm_value tiles =
        cm_emit(up, "Reshape", cm_upgrade_cast(up, cm_upgrade_input(up, 1), CM_INT64), one);
    const cm_value axis =
        cm_emit(up, "Reshape", cm_upgrade_cast(up, cm_upgrade_input(up, 2), CM_INT64), one);
    const cm_value rank = cm_emit(up, "Shape", cm_emit(up, "Shape", x));
    const cm_value ones = cm_emit(up, "Expand", one, rank);
    cm_upgrade_set_input(up, 1, cm_emit(up, "ScatterElements", ones, axis, tiles));
    cm_upgrade_set_input(up, 2, 0);
    return CM_OK;
}

static enum cm_status topk_10(struct cm_upgrade *up)
{
    const int64_t k = cm_node_int(&up->node, "k");
    cm_upgrade_drop(up, "k");
    cm_upgrade_set_input(up, 1, cm_upgrade_int64s(up, 1, &k));
    return CM_OK;
}

static enum cm_status unsqueeze_13(struct cm_upgrade *up)
{
    cm_upgrade_ints_to_input(up, "axes", 1);
    return CM_OK;
}

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Concat", 4, concat_4, "axis must be given; it was 1 by default"},
    {"DFT", 20, dft_20, "axis is an input, -2 by default; it was 1"},
    {"OneHot", 11, onehot_11, "negative indices count from the end"},
    {"Pad", 2, pad_2, "paddings are called pads"},
    {"Pad", 11, pad_11, "pads and value are inputs"},
    {"Reshape", 5, reshape_5, "the shape is an input"},
    {"Scan", 9, cm_upgrade_scan_8, "no batch axis, no lengths of sequences"},
    {"Scatter", 11, scatter_11, "is called ScatterElements"},
    {"Slice", 10, slice_10, "starts, ends and axes are inputs"},
    {"Split", 2, split_2, "the lengths are not an input"},
    {"Split", 13, split_13, "the lengths are an input"},
    {"Split", 18, split_18, "equal parts must be asked for by their number"},
    {"Squeeze", 13, cm_upgrade_axes_to_input, "axes are an input"},
    {"Tile", 6, tile_6, "repeats for every axis, not tiles along one"},
    {"TopK", 10, topk_10, "k is an input"},
    {"Unsqueeze", 13, unsqueeze_13, "axes are an input"},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_shape = CM_UPGRADE_TABLE("", rows);
