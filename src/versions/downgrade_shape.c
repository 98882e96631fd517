/* Older forms of operators that move, cut and index: inputs that were attributes, mostly. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

static enum cm_status dft_20(struct cm_upgrade *down)
{
    struct cm_int64s axis;
    CM_TRY(cm_downgrade_ints(down, 2, "axis", &axis));
    cm_upgrade_set_input(down, 2, 0);
    cm_upgrade_set(down,
                   cm_attr_int(cm_upgrade_arena(down), "axis", axis.count ? axis.items[0] : -2));
    return CM_OK;
}

/* Negative indices count from the end, which was not so. */
static enum cm_status onehot_11(struct cm_upgrade *down)
{
    const enum cm_dtype_class kind = cm_dtype_info(cm_upgrade_type(down, 0)->dtype)->kind;
    const struct cm_tensor *indices;
    if (cm_node_int(&down->node, "axis") != -1)
        CM_TRY(cm_downgrade_axis(down, "axis", 1));
    CM_TRY(cm_value_constant(down->build.graph->module, cm_upgrade_input(down, 0), &indices,
                             down->build.err));
    bool negative = kind != CM_CLASS_UNSIGNED && kind != CM_CLASS_BOOL;
    if (indices) {
        negative = false;
        for (int64_t i = 0; i < cm_tensor_count(indices); i++)
            negative = negative || cm_tensor_real(indices, i) < 0;
    }
    if (!negative)
        return CM_OK;
    const cm_value all = cm_upgrade_cast(down, cm_upgrade_input(down, 0), CM_INT64);
    const cm_value depth =
        cm_emit(down, "Reshape", cm_upgrade_cast(down, cm_upgrade_input(down, 1), CM_INT64),
                cm_upgrade_int64s(down, 0, NULL));
    const cm_value below = cm_emit(down, "Less", all, cm_build_int64(&down->build, 0));
    cm_upgrade_set_input(down, 0,
                         cm_emit(down, "Where", below, cm_emit(down, "Add", all, depth), all));
    return CM_OK;
}

static enum cm_status pad_2(struct cm_upgrade *down)
{
    cm_upgrade_rename(down, "pads", "paddings");
    return CM_OK;
}

static enum cm_status pad_11(struct cm_upgrade *down)
{
    const struct cm_tensor *value;
    CM_TRY(cm_downgrade_to_attribute(down, 1, "pads"));
    CM_TRY(cm_downgrade_constant(down, 2, "value", &value));
    if (value && cm_tensor_count(value) == 1)
        cm_upgrade_set(
            down, cm_attr_float(cm_upgrade_arena(down), "value", (float)cm_tensor_real(value, 0)));
    cm_upgrade_set_input(down, 2, 0);
    return CM_OK;
}

/* Pads of all axes, 0 for those that are not listed. */
static enum cm_status pad_18(struct cm_upgrade *down)
{
    struct cm_int64s axes;
    struct cm_arena *arena = cm_upgrade_arena(down);
    const int rank = cm_upgrade_rank(down, 0);
    const cm_value pads = cm_upgrade_input(down, 1);
    const struct cm_tensor *constant;
    int64_t numbers[2 * CM_MAX_RANK] = {0};
    cm_value pieces[2 * CM_MAX_RANK] = {0};
    if (!cm_upgrade_input(down, 3))
        return CM_OK;
    CM_TRY(cm_downgrade_ints(down, 3, "axes", &axes));
    CM_TRY(cm_value_constant(down->build.graph->module, pads, &constant, down->build.err));
    if (rank == CM_RANK_UNKNOWN || axes.count > (size_t)rank ||
        (constant && cm_tensor_count(constant) != 2 * (int64_t)axes.count))
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 18 there were pads for all axes, whose number is "
                               "not known");
    for (size_t i = 0; i < 2 * axes.count; i++) {
        const int64_t given = axes.items[i % axes.count], axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank)
            return cm_upgrade_fail(down, CM_BAD_MODEL, "axis %lld is out of range for rank %d",
                                   (long long)given, rank);
        const int64_t place = i < axes.count ? axis : rank + axis;
        if (constant)
            numbers[place] = cm_tensor_int(constant, (int64_t)i);
        else
            pieces[place] = cm_emit(down, "Slice", pads, cm_emit_int64s(down, (int64_t)i),
                                    cm_emit_int64s(down, (int64_t)i + 1), cm_emit_int64s(down, 0));
    }
    cm_upgrade_set_input(down, 3, 0);
    if (constant) {
        cm_upgrade_set_input(down, 1, cm_upgrade_int64s(down, 2 * (size_t)rank, numbers));
        return CM_OK;
    }
    const cm_value zero = cm_emit_int64s(down, 0);
    for (int i = 0; i < 2 * rank; i++)
        pieces[i] = pieces[i] ? pieces[i] : zero;
    cm_upgrade_set_input(down, 1,
                         cm_build(&down->build, &(struct cm_emission){
                                                    .op = "Concat",
                                                    .inputs = pieces,
                                                    .n_inputs = 2 * (size_t)rank,
                                                    CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0))}));
    return CM_OK;
}

static enum cm_status pad_19(struct cm_upgrade *down)
{
    return cm_downgrade_refuse_word(down, "mode", "wrap");
}

static enum cm_status reshape_5(struct cm_upgrade *down)
{
    return cm_downgrade_to_attribute(down, 1, "shape");
}

/* A 0 in the shape is always a dimension to be copied: it must not be there. A size that is not
 * known is taken to be none. */
static enum cm_status reshape_14(struct cm_upgrade *down)
{
    const struct cm_tensor *shape;
    const struct cm_type *type = cm_builder_type(&down->build, down->outputs[0]);
    if (!cm_node_int(&down->node, "allowzero"))
        return CM_OK;
    CM_TRY(cm_value_constant(down->build.graph->module, cm_upgrade_input(down, 1), &shape,
                             down->build.err));
    bool zero = false;
    for (int64_t i = 0; shape && i < cm_tensor_count(shape); i++)
        zero = zero || !cm_tensor_int(shape, i);
    for (int i = 0; !shape && type && i < type->rank; i++)
        zero = zero || type->dims[i].value == 0;
    if (zero)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 14 a 0 in the shape always copied a dimension, and "
                               "here it means an empty one");
    cm_upgrade_drop(down, "allowzero");
    return CM_OK;
}

static enum cm_status scatter_11(struct cm_upgrade *down)
{
    if (down->opset < 9)
        return cm_upgrade_fail(down, CM_UNSUPPORTED, "Scatter is an operator since opset 9");
    CM_TRY(cm_downgrade_one_axis(down));
    return cm_upgrade_become(down, "Scatter", 9);
}

static enum cm_status scatter_18(struct cm_upgrade *down)
{
    CM_TRY(cm_downgrade_refuse_word(down, "reduction", "max"));
    return cm_downgrade_refuse_word(down, "reduction", "min");
}

/* The part of a shape is cut out of the whole. */
static enum cm_status shape_15(struct cm_upgrade *down)
{
    const int64_t start = cm_node_int(&down->node, "start"), end = cm_node_int(&down->node, "end");
    const bool ends = cm_upgrade_given(down, "end");
    cm_upgrade_drop(down, "start");
    cm_upgrade_drop(down, "end");
    if (!start && !ends)
        return CM_OK;
    CM_TRY(cm_upgrade_rest(down));
    down->outputs[0] =
        cm_emit(down, "Slice", down->outputs[0], cm_emit_int64s(down, start),
                cm_emit_int64s(down, ends ? end : INT64_MAX), cm_emit_int64s(down, 0));
    return CM_OK;
}

static enum cm_status slice_10(struct cm_upgrade *down)
{
    struct cm_int64s steps;
    CM_TRY(cm_downgrade_ints(down, 4, "steps", &steps));
    for (size_t i = 0; i < steps.count; i++)
        if (steps.items[i] != 1)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "before version 10 a slice had no steps, here one is %lld",
                                   (long long)steps.items[i]);
    CM_TRY(cm_downgrade_to_attribute(down, 1, "starts"));
    CM_TRY(cm_downgrade_to_attribute(down, 2, "ends"));
    CM_TRY(cm_downgrade_to_attribute(down, 3, "axes"));
    cm_upgrade_set_input(down, 4, 0);
    const struct cm_int64s axes = cm_node_ints(&down->node, "axes");
    int64_t *counted = CM_NEW_ARRAY(cm_upgrade_arena(down), int64_t, axes.count + 1);
    for (size_t i = 0; i < axes.count; i++) {
        const int rank = cm_upgrade_rank(down, 0);
        counted[i] = axes.items[i];
        if (counted[i] < 0 && rank == CM_RANK_UNKNOWN)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "axis %lld is counted from the end, and the rank is not known",
                                   (long long)counted[i]);
        counted[i] += counted[i] < 0 ? rank : 0;
    }
    if (axes.count)
        cm_upgrade_set(down, cm_attr_ints(cm_upgrade_arena(down), "axes", axes.count, counted));
    return CM_OK;
}

static enum cm_status split_13(struct cm_upgrade *down)
{
    return cm_downgrade_to_attribute(down, 1, "split");
}

/* Equal parts went without saying; where the last is shorter, all lengths are said. */
static enum cm_status split_18(struct cm_upgrade *down)
{
    const struct cm_type *type = cm_upgrade_type(down, 0);
    const int64_t parts = (int64_t)down->spec->n_outputs, given = cm_node_int(&down->node, "axis");
    const int64_t axis = given < 0 ? given + type->rank : given;

    cm_upgrade_drop(down, "num_outputs");
    if (cm_upgrade_input(down, 1))
        return CM_OK;
    if (type->rank == CM_RANK_UNKNOWN || axis < 0 || axis >= type->rank ||
        !cm_dim_known(type->dims[axis]) || parts > LIST_MAX)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "before version 18 parts without lengths were equal, and whether "
                               "these are is not known");
    const int64_t size = type->dims[axis].value, part = (size + parts - 1) / parts;
    if (size % parts == 0)
        return CM_OK;
    int64_t *lengths = CM_NEW_ARRAY(cm_upgrade_arena(down), int64_t, (size_t)parts);
    for (int64_t i = 0; i < parts; i++) {
        const int64_t left = size - i * part;
        lengths[i] = left < 0 ? 0 : left < part ? left : part;
    }
    cm_upgrade_set_input(down, 1, cm_upgrade_int64s(down, (size_t)parts, lengths));
    return CM_OK;
}

static enum cm_status axes_13(struct cm_upgrade *down)
{
    return cm_downgrade_to_attribute(down, 1, "axes");
}

static enum cm_status unsqueeze_11(struct cm_upgrade *down)
{
    return cm_downgrade_axis(down, "axes", (int)cm_node_ints(&down->node, "axes").count);
}

/* Repeats of every axis become tiles along one axis after the other. */
static enum cm_status tile_6(struct cm_upgrade *down)
{
    struct cm_int64s repeats;
    cm_value x = cm_upgrade_input(down, 0);
    size_t last = 0;
    CM_TRY(cm_downgrade_ints(down, 1, "repeats", &repeats));
    for (size_t i = 0; i < repeats.count; i++)
        last = repeats.items[i] != 1 ? i : last;
    for (size_t i = 0; i < repeats.count; i++)
        if (repeats.items[i] != 1 && i != last)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "before version 6 a tensor was repeated along one axis only");
    cm_upgrade_set_input(
        down, 1, cm_emit_scalar_like(down, x, repeats.count ? (double)repeats.items[last] : 1));
    cm_upgrade_set_input(down, 2, cm_emit_scalar_like(down, x, (double)last));
    return CM_OK;
}

static enum cm_status topk_10(struct cm_upgrade *down)
{
    struct cm_int64s k;
    CM_TRY(cm_downgrade_ints(down, 1, "k", &k));
    if (k.count != 1)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "input 1 must be one number");
    cm_upgrade_set(down, cm_attr_int(cm_upgrade_arena(down), "k", k.items[0]));
    cm_upgrade_set_input(down, 1, 0);
    return CM_OK;
}

/* One sequence is a batch of one. */
enum cm_status cm_downgrade_scan_9(struct cm_upgrade *down)
{
    static const char *const axes[] = {"scan_input_axes", "scan_output_axes",
                                       "scan_output_directions"};
    const size_t n = down->spec->n_inputs;
    cm_value *inputs = CM_NEW_ARRAY(cm_upgrade_arena(down), cm_value, n + 1);
    for (size_t a = 0; a < CM_COUNT(axes); a++) {
        const struct cm_int64s list = cm_node_ints(&down->node, axes[a]);
        for (size_t i = 0; i < list.count; i++)
            if (list.items[i])
                return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                       "before version 9 there was no attribute '%s'", axes[a]);
        cm_upgrade_drop(down, axes[a]);
    }
    cm_upgrade_rename(down, "scan_input_directions", "directions");
    for (size_t i = 0; i < n; i++)
        inputs[i + 1] =
            cm_emit(down, "Unsqueeze", cm_upgrade_input(down, i), cm_emit_int64s(down, 0));
    down->spec->inputs = inputs;
    down->spec->n_inputs = n + 1;
    CM_TRY(cm_upgrade_rest(down));
    for (size_t o = 0; o < down->n_outputs; o++)
        if (down->outputs[o])
            down->outputs[o] = cm_emit(down, "Squeeze", down->outputs[o], cm_emit_int64s(down, 0));
    return down->build.status;
}

static const char from_front[] = "axes are counted from the front";
static const char axes_given[] = "axes are an attribute";

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Compress", 11, cm_downgrade_one_axis, from_front},
    {"Concat", 4, cm_downgrade_nothing, NULL},
    {"Concat", 11, cm_downgrade_one_axis, from_front},
    {"DFT", 20, dft_20, "axis is an attribute"},
    {"Flatten", 11, cm_downgrade_one_axis, from_front},
    {"Gather", 11, cm_downgrade_one_axis, from_front},
    {"OneHot", 11, onehot_11, "negative indices match nothing"},
    {"Pad", 2, pad_2, "pads are called paddings"},
    {"Pad", 11, pad_11, "pads and value are attributes"},
    {"Pad", 18, pad_18, "pads for all axes"},
    {"Pad", 19, pad_19, NULL},
    {"Reshape", 5, reshape_5, "the shape is an attribute"},
    {"Reshape", 14, reshape_14, NULL},
    {"Scan", 9, cm_downgrade_scan_9, "a batch of one sequence"},
    {"ScatterElements", 11, scatter_11, "is called Scatter"},
    {"ScatterElements", 18, scatter_18, NULL},
    {"ScatterND", 18, scatter_18, NULL},
    {"Shape", 15, shape_15, "a part is cut out of the whole"},
    {"Slice", 10, slice_10, "starts, ends and axes are attributes"},
    {"Split", 2, cm_downgrade_nothing, NULL},
    {"Split", 11, cm_downgrade_one_axis, from_front},
    {"Split", 13, split_13, "the lengths are an attribute"},
    {"Split", 18, split_18, "equal parts go without saying"},
    {"Squeeze", 11, cm_downgrade_axes, from_front},
    {"Squeeze", 13, axes_13, axes_given},
    {"Tile", 6, tile_6, "tiles along one axis"},
    {"TopK", 10, topk_10, "k is an attribute"},
    {"TopK", 11, cm_downgrade_one_axis, from_front},
    {"Unsqueeze", 11, unsqueeze_11, from_front},
    {"Unsqueeze", 13, axes_13, axes_given},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_shape = CM_UPGRADE_TABLE("", rows);
