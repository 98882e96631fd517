/* How operators that move, cut and index changed: attributes became inputs, mostly. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

static enum cm_status concat_4_up(struct cm_upgrade *up)
{
    if (!cm_upgrade_given(up, "axis"))
        cm_upgrade_set(up, cm_attr_int(cm_upgrade_arena(up), "axis", 1));
    return CM_OK;
}

static enum cm_status dft_20_up(struct cm_upgrade *up)
{
    const int64_t axis = cm_node_int(&up->node, "axis");
    cm_upgrade_drop(up, "axis");
    cm_upgrade_set_input(up, 2, cm_build_int64(&up->build, axis));
    return CM_OK;
}

/* Negative indices matched nothing; now they count from the end. The depth itself is the nearest
 * number that matches nothing. */
static enum cm_status onehot_11_up(struct cm_upgrade *up)
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

static enum cm_status pad_2_up(struct cm_upgrade *up)
{
    cm_upgrade_rename(up, "paddings", "pads");
    return CM_OK;
}

static enum cm_status scatter_11_up(struct cm_upgrade *up)
{
    return cm_upgrade_become(up, "ScatterElements", 11);
}

/* In versions 2 to 12 the lengths are an attribute. */
static enum cm_status lengths_to_attribute_up(struct cm_upgrade *up)
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
static enum cm_status split_2_up(struct cm_upgrade *up)
{
    if (!cm_upgrade_given(up, "axis"))
        return cm_upgrade_fail(
            up, CM_UNSUPPORTED,
            "Split version 1 needs attribute 'axis', for which ONNX defines no default");
    if (up->form && up->opset < 13)
        return lengths_to_attribute_up(up);
    if (cm_upgrade_input(up, 1))
        cm_upgrade_set_input(up, 1, cm_upgrade_cast(up, cm_upgrade_input(up, 1), CM_INT64));
    return CM_OK;
}

static enum cm_status split_18_up(struct cm_upgrade *up)
{
    if (!cm_upgrade_input(up, 1))
        cm_upgrade_set(
            up, cm_attr_int(cm_upgrade_arena(up), "num_outputs", (int64_t)up->spec->n_outputs));
    return CM_OK;
}

/* (input, tiles, axis) to (input, repeats): ones, but tiles at the axis. */
static enum cm_status tile_6_up(struct cm_upgrade *up)
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

static enum cm_status reshape_5_up(struct cm_upgrade *up)
{
    return cm_upgrade_input(up, 1)
               ? CM_OK
               : cm_upgrade_fail(up, CM_BAD_MODEL, "Reshape version 1 needs attribute 'shape'");
}

static enum cm_status dft_20_down(struct cm_upgrade *down)
{
    struct cm_int64s axis;
    CM_TRY(cm_downgrade_ints(down, 2, "axis", &axis));
    cm_upgrade_set_input(down, 2, 0);
    cm_upgrade_set(down,
                   cm_attr_int(cm_upgrade_arena(down), "axis", axis.count ? axis.items[0] : -2));
    return CM_OK;
}

/* Negative indices count from the end, which was not so. */
static enum cm_status onehot_11_down(struct cm_upgrade *down)
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

static enum cm_status pad_2_down(struct cm_upgrade *down)
{
    cm_upgrade_rename(down, "pads", "paddings");
    return CM_OK;
}

/* Pads of all axes, 0 for those that are not listed. */
static enum cm_status pad_18_down(struct cm_upgrade *down)
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

/* A 0 in the shape is always a dimension to be copied: it must not be there. A size that is not
 * known is taken to be none. */
static enum cm_status reshape_14_down(struct cm_upgrade *down)
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

static enum cm_status scatter_11_down(struct cm_upgrade *down)
{
    if (down->opset < 9)
        return cm_upgrade_fail(down, CM_UNSUPPORTED, "Scatter is an operator since opset 9");
    CM_TRY(cm_downgrade_axes(down));
    return cm_upgrade_become(down, "Scatter", 9);
}

/* The part of a shape is cut out of the whole. */
static enum cm_status shape_15_down(struct cm_upgrade *down)
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

static enum cm_status slice_10_down(struct cm_upgrade *down)
{
    struct cm_int64s steps;
    CM_TRY(cm_downgrade_ints(down, 4, "steps", &steps));
    for (size_t i = 0; i < steps.count; i++)
        if (steps.items[i] != 1)
            return cm_upgrade_fail(down, CM_UNSUPPORTED,
                                   "before version 10 a slice had no steps, here one is %lld",
                                   (long long)steps.items[i]);
    cm_upgrade_set_input(down, 4, 0);
    return cm_downgrade_axis(down, "axes", 0);
}

/* Equal parts went without saying; where the last is shorter, all lengths are said. */
static enum cm_status split_18_down(struct cm_upgrade *down)
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

static enum cm_status unsqueeze_11_down(struct cm_upgrade *down)
{
    return cm_downgrade_axis(down, "axes", (int)cm_node_ints(&down->node, "axes").count);
}

/* Repeats of every axis become tiles along one axis after the other. */
static enum cm_status tile_6_down(struct cm_upgrade *down)
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

/* One sequence is a batch of one. */
static enum cm_status scan_9_down(struct cm_upgrade *down)
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
static const char axes_in[] = "axes are an input", axes_given[] = "axes are an attribute";

static const struct cm_version_row rows[] = {
    {"Compress Concat Flatten Gather Split Squeeze TopK", 11, .down = cm_downgrade_axes,
     .down_note = from_front},
    {"Concat", 4, .up = concat_4_up, .up_note = "axis must be given; it was 1 by default",
     .down = cm_downgrade_nothing},
    {"DFT", 20, .up = dft_20_up, .up_note = "axis is an input, -2 by default; it was 1",
     .down = dft_20_down, .down_note = "axis is an attribute"},
    {"OneHot", 11, .up = onehot_11_up, .up_note = "negative indices count from the end",
     .down = onehot_11_down, .down_note = "negative indices match nothing"},
    {"Pad", 2, .up = pad_2_up, .up_note = "paddings are called pads", .down = pad_2_down,
     .down_note = "pads are called paddings"},
    {"Pad", 11, .moved = {{"pads", 1, CM_MOVED_LIST}, {"value", 2, CM_MOVED_REAL_OR_0}},
     .up_note = "pads and value are inputs", .down_note = "pads and value are attributes"},
    {"Pad", 18, .down = pad_18_down, .down_note = "pads for all axes"},
    {"Reshape", 5, .gone = "consumed_inputs", .moved = {{"shape", 1, CM_MOVED_LIST}},
     .up = reshape_5_up, .up_note = "the shape is an input",
     .down_note = "the shape is an attribute"},
    {"Reshape", 14, .down = reshape_14_down},
    {"Scan", 9, .up = cm_upgrade_scan_8, .up_note = "no batch axis, no lengths of sequences",
     .down = scan_9_down, .down_note = "a batch of one sequence"},
    {"Scatter", 11, .up = scatter_11_up, .up_note = "is called ScatterElements"},
    {"ScatterElements", 11, .down = scatter_11_down, .down_note = "is called Scatter"},
    {"Shape", 15, .down = shape_15_down, .down_note = "a part is cut out of the whole"},
    {"Slice", 10,
     .moved = {{"starts", 1, CM_MOVED_LIST},
               {"ends", 2, CM_MOVED_LIST},
               {"axes", 3, CM_MOVED_LIST}},
     .up_note = "starts, ends and axes are inputs", .down = slice_10_down,
     .down_note = "starts, ends and axes are attributes"},
    {"Split", 2, .up = split_2_up, .up_note = "the lengths are not an input",
     .down = cm_downgrade_nothing},
    {"Split", 13, .moved = {{"split", 1, CM_MOVED_LIST_OR_ALL}},
     .up_note = "the lengths are an input", .down_note = "the lengths are an attribute"},
    {"Split", 18, .up = split_18_up, .up_note = "equal parts must be asked for by their number",
     .same_where_legal = true, .down = split_18_down, .down_note = "equal parts go without saying"},
    {"Squeeze", 13, .moved = {{"axes", 1, CM_MOVED_LIST_OR_ALL}}, .up_note = axes_in,
     .down_note = axes_given},
    {"Tile", 6, .up = tile_6_up, .up_note = "repeats for every axis, not tiles along one",
     .down = tile_6_down, .down_note = "tiles along one axis"},
    {"TopK", 10, .moved = {{"k", 1, CM_MOVED_COUNT}}, .up_note = "k is an input",
     .down_note = "k is an attribute"},
    {"Unsqueeze", 11, .down = unsqueeze_11_down, .down_note = from_front},
    {"Unsqueeze", 13, .moved = {{"axes", 1, CM_MOVED_LIST}}, .up_note = axes_in,
     .down_note = axes_given},
};
const struct cm_version_table cm_changes_shape = CM_VERSION_TABLE("", rows);
