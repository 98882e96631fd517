/* Upsample, and Resize before it could say how coordinates are mapped. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

static bool mode_is(const struct cm_upgrade *up, const char *attribute, const char *value)
{
    return cm_str_is(cm_node_str(&up->node, attribute), value);
}

static void set_text(struct cm_upgrade *up, const char *attribute, const char *value)
{
    cm_upgrade_set(up, cm_attr_str(cm_upgrade_arena(up), attribute, cm_str(value)));
}

static enum cm_status upsample_7(struct cm_upgrade *up)
{
    const float scales[] = {1, 1, cm_node_float(&up->node, "height_scale"),
                            cm_node_float(&up->node, "width_scale")};
    cm_upgrade_drop(up, "height_scale");
    cm_upgrade_drop(up, "width_scale");
    cm_upgrade_set(up, cm_attr_floats(cm_upgrade_arena(up), "scales", 4, scales));
    return CM_OK;
}

static enum cm_status upsample_9(struct cm_upgrade *up)
{
    const struct cm_floats scales = cm_node_floats(&up->node, "scales");
    const struct cm_shape shape = CM_SHAPE((int64_t)scales.count);
    float none = 0;
    const struct cm_tensor tensor =
        cm_tensor_borrow(CM_FLOAT, &shape, scales.count ? scales.items : &none);
    cm_upgrade_set_input(up, 1, cm_build_tensor(&up->build, &tensor));
    cm_upgrade_drop(up, "scales");
    return CM_OK;
}

static enum cm_status upsample_10(struct cm_upgrade *up)
{
    if (mode_is(up, "mode", "bilinear")) /* the word of version 1, seen in later files too */
        set_text(up, "mode", "linear");
    return cm_upgrade_become(up, "Resize", 10);
}

/* Which way the scales go; both when they are not constant. */
static enum cm_status directions(struct cm_upgrade *up, cm_value scales, bool *shrinks, bool *grows)
{
    const struct cm_tensor *constant;
    CM_TRY(cm_value_constant(up->build.graph->module, scales, &constant, up->build.err));
    if (constant && constant->type != CM_FLOAT)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "scales are %s, must be float",
                               cm_dtype_name(constant->type));
    *shrinks = *grows = !constant;
    for (int64_t i = 0; constant && i < cm_tensor_count(constant); i++) {
        *shrinks = *shrinks || cm_tensor_real(constant, i) < 1;
        *grows = *grows || cm_tensor_real(constant, i) > 1;
    }
    return CM_OK;
}

/* Version 10 says nothing of how coordinates are mapped. What runtimes did, and so what models were
 * made for: x / scale; the nearest element is the one below where an axis grows, and the one above
 * where it shrinks. An operator that does both is two. */
static enum cm_status resize_11(struct cm_upgrade *up)
{
    struct cm_arena *arena = cm_upgrade_arena(up);
    cm_value x = cm_upgrade_input(up, 0), scales = cm_upgrade_input(up, 1);
    bool shrinks = false, grows = false;

    set_text(up, "coordinate_transformation_mode", "asymmetric");
    if (mode_is(up, "mode", "nearest")) {
        CM_TRY(directions(up, scales, &shrinks, &grows));
        set_text(up, "nearest_mode", shrinks && !grows ? "ceil" : "floor");
    }
    if (shrinks && grows) {
        const cm_value one = cm_emit_scalar(up, CM_FLOAT, 1);
        const cm_value down = cm_emit(up, "Min", scales, one);
        x = cm_emit_with(up, "Resize",
                         CM_ATTRIBUTES(cm_attr_str(arena, "mode", CM_STR("nearest")),
                                       cm_attr_str(arena, "nearest_mode", CM_STR("ceil")),
                                       cm_attr_str(arena, "coordinate_transformation_mode",
                                                   CM_STR("asymmetric"))),
                         x, 0, down);
        scales = cm_emit(up, "Max", scales, one);
    }
    cm_upgrade_set_input(up, 0, x);
    cm_upgrade_set_input(up, 1, 0); /* the region, which this mode does not look at */
    if (up->form) {                 /* and which must be there until version 13 */
        const struct cm_shape none = CM_SHAPE(0);
        float unread = 0;
        const struct cm_tensor empty = cm_tensor_borrow(CM_FLOAT, &none, &unread);
        cm_upgrade_set_input(up, 1, cm_build_tensor(&up->build, &empty));
    }
    cm_upgrade_set_input(up, 2, scales);
    return CM_OK;
}

static bool is_empty_list(const struct cm_type *type)
{
    return type && type->kind == CM_KIND_TENSOR && type->rank == 1 && type->dims[0].value == 0;
}

/* tf_half_pixel_for_nn is half_pixel moved up by a half, so rounding half up where that took the
 * floor, or the ceiling where that rounded half down, finds the same element. Its other uses have
 * no form in version 13; they keep the word, which our kernel and other runtimes still take. */
static enum cm_status resize_13(struct cm_upgrade *up)
{
    if (!mode_is(up, "coordinate_transformation_mode", "tf_crop_and_resize"))
        cm_upgrade_set_input(up, 1, 0);
    if (cm_upgrade_input(up, 3)) /* one of the two was there, and empty */
        cm_upgrade_set_input(up, is_empty_list(cm_upgrade_type(up, 3)) ? 3 : 2, 0);
    if (!mode_is(up, "coordinate_transformation_mode", "tf_half_pixel_for_nn") ||
        !mode_is(up, "mode", "nearest"))
        return CM_OK;
    if (mode_is(up, "nearest_mode", "floor"))
        set_text(up, "nearest_mode", "round_prefer_ceil");
    else if (mode_is(up, "nearest_mode", "round_prefer_floor"))
        set_text(up, "nearest_mode", "ceil");
    else
        return CM_OK;
    set_text(up, "coordinate_transformation_mode", "half_pixel");
    return CM_OK;
}

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Resize", 11, resize_11, "says how coordinates are mapped"},
    {"Resize", 13, resize_13, "absent operands may be left out; tf_half_pixel_for_nn is gone"},
    {"Upsample", 7, upsample_7, "a scale for every axis"},
    {"Upsample", 9, upsample_9, "the scales are an input"},
    {"Upsample", 10, upsample_10, "is a Resize"},
};
/* clang-format on */
const struct cm_upgrade_table cm_upgrade_resize = CM_UPGRADE_TABLE("", rows);
