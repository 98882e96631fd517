/* How Upsample became Resize, which then could say how coordinates are mapped. */
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

/* A list as an operand. */
static cm_value floats(struct cm_upgrade *up, size_t count, const float *items)
{
    float none = 0;
    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE((int64_t)count),
                                                     count ? (void *)(uintptr_t)items : &none);
    return cm_build_tensor(&up->build, &tensor);
}

static enum cm_status upsample_7_up(struct cm_upgrade *up)
{
    const float scales[] = {1, 1, cm_node_float(&up->node, "height_scale"),
                            cm_node_float(&up->node, "width_scale")};
    cm_upgrade_drop(up, "height_scale");
    cm_upgrade_drop(up, "width_scale");
    cm_upgrade_set(up, cm_attr_floats(cm_upgrade_arena(up), "scales", 4, scales));
    return CM_OK;
}

static enum cm_status upsample_9_up(struct cm_upgrade *up)
{
    const struct cm_floats scales = cm_node_floats(&up->node, "scales");
    cm_upgrade_set_input(up, 1, floats(up, scales.count, scales.items));
    cm_upgrade_drop(up, "scales");
    return CM_OK;
}

static enum cm_status upsample_10_up(struct cm_upgrade *up)
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
static enum cm_status resize_11_up(struct cm_upgrade *up)
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
    if (up->form)                   /* and which must be there until version 13 */
        cm_upgrade_set_input(up, 1, floats(up, 0, NULL));
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
static enum cm_status resize_13_up(struct cm_upgrade *up)
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

/* An operand that is not there is an empty one. */
static enum cm_status resize_13_down(struct cm_upgrade *down)
{
    for (size_t i = 1; i <= 2; i++)
        if (!cm_upgrade_input(down, i))
            cm_upgrade_set_input(down, i, floats(down, 0, NULL));
    return CM_OK;
}

/* Sizes, divided by what the input has, are scales, where that leads back to the same sizes. */
static enum cm_status scales_of_sizes(struct cm_upgrade *down, cm_value *out)
{
    const struct cm_type *type = cm_upgrade_type(down, 0);
    struct cm_int64s sizes;
    float scales[CM_MAX_RANK];
    CM_TRY(cm_downgrade_ints(down, 3, "sizes", &sizes));
    bool known = type->rank != CM_RANK_UNKNOWN && sizes.count == (size_t)type->rank;
    for (size_t i = 0; known && i < sizes.count; i++) {
        const int64_t size = cm_dim_known(type->dims[i]) ? type->dims[i].value : 0;
        known = size > 0;
        scales[i] = known ? (float)sizes.items[i] / (float)size : 0;
        known = known && scales[i] * (float)size == (float)sizes.items[i];
    }
    if (!known)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "Resize version 10 takes scales only, which do not follow from "
                               "these sizes");
    *out = floats(down, sizes.count, scales);
    return CM_OK;
}

/* What version 10 does: x / scale, and with 'nearest' the element below where an axis grows, the
 * one above where it shrinks. */
static enum cm_status resize_11_down(struct cm_upgrade *down)
{
    static const char *const dropped[] = {"coordinate_transformation_mode", "nearest_mode",
                                          "cubic_coeff_a", "exclude_outside",
                                          "extrapolation_value"};
    cm_value scales = cm_upgrade_input(down, 2);
    bool shrinks, grows;

    if (cm_upgrade_input(down, 3))
        CM_TRY(scales_of_sizes(down, &scales));
    CM_TRY(directions(down, scales, &shrinks, &grows));
    const bool nearest = mode_is(down, "mode", "nearest");
    const bool as_then =
        nearest ? (!grows || mode_is(down, "nearest_mode", "floor")) &&
                      (!shrinks || mode_is(down, "nearest_mode", "ceil"))
                : mode_is(down, "mode", "linear") && !cm_node_int(&down->node, "exclude_outside");
    const bool unmoved = !shrinks && !grows;
    if ((!as_then || !mode_is(down, "coordinate_transformation_mode", "asymmetric")) && !unmoved)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "Resize version 10 maps coordinates in one way only: asymmetric, "
                               "linear, or nearest with floor where it enlarges and ceil where it "
                               "shrinks");
    for (size_t i = 0; i < CM_COUNT(dropped); i++)
        cm_upgrade_drop(down, dropped[i]);
    cm_upgrade_set_input(down, 1, scales);
    cm_upgrade_set_input(down, 2, 0);
    cm_upgrade_set_input(down, 3, 0);
    return CM_OK;
}

/* Version 9 of Upsample has the scales as an operand, and they are 1 or more. */
static enum cm_status resize_10_down(struct cm_upgrade *down)
{
    const struct cm_tensor *scales;
    CM_TRY(cm_value_constant(down->build.graph->module, cm_upgrade_input(down, 1), &scales,
                             down->build.err));
    for (int64_t i = 0; scales && i < cm_tensor_count(scales); i++)
        if (cm_tensor_real(scales, i) < 1)
            return cm_upgrade_fail(down, CM_UNSUPPORTED, "Upsample version 9 cannot shrink");
    return cm_upgrade_become(down, "Upsample", 9);
}

static enum cm_status upsample_9_down(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_tensor *scales;
    float numbers[CM_MAX_RANK] = {0};
    CM_TRY(cm_downgrade_constant(down, 1, "scales", &scales));
    const int64_t count = scales ? cm_tensor_count(scales) : 0;
    if (count < 1 || count > CM_MAX_RANK)
        return cm_upgrade_fail(down, CM_BAD_MODEL, "there are %lld scales", (long long)count);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)cm_tensor_real(scales, i);
    cm_upgrade_set(down, cm_attr_floats(arena, "scales", (size_t)count, numbers));
    cm_upgrade_set_input(down, 1, 0);
    return CM_OK;
}

static enum cm_status upsample_7_down(struct cm_upgrade *down)
{
    struct cm_arena *arena = cm_upgrade_arena(down);
    const struct cm_floats scales = cm_node_floats(&down->node, "scales");
    if (scales.count != 4 || scales.items[0] != 1 || scales.items[1] != 1)
        return cm_upgrade_fail(down, CM_UNSUPPORTED,
                               "Upsample version 1 enlarges the last two of four axes only");
    cm_upgrade_set(down, cm_attr_float(arena, "height_scale", scales.items[2]));
    cm_upgrade_set(down, cm_attr_float(arena, "width_scale", scales.items[3]));
    cm_upgrade_drop(down, "scales");
    if (mode_is(down, "mode", "linear"))
        cm_upgrade_set(down, cm_attr_str(arena, "mode", CM_STR("bilinear")));
    return CM_OK;
}

static const struct cm_version_row rows[] = {
    {"Resize", 10, .down = resize_10_down, .down_note = "is an Upsample"},
    {"Resize", 11, .up = resize_11_up, .up_note = "says how coordinates are mapped",
     .down = resize_11_down, .down_note = "maps coordinates in one way"},
    {"Resize", 13, .up = resize_13_up,
     .up_note = "absent operands may be left out; tf_half_pixel_for_nn is gone",
     .down = resize_13_down, .down_note = "absent operands are empty ones"},
    {"Upsample", 7, .up = upsample_7_up, .up_note = "a scale for every axis",
     .down = upsample_7_down, .down_note = "a scale for height and width"},
    {"Upsample", 9, .up = upsample_9_up, .up_note = "the scales are an input",
     .down = upsample_9_down, .down_note = "the scales are an attribute"},
    {"Upsample", 10, .up = upsample_10_up, .up_note = "is a Resize"},
};
const struct cm_version_table cm_changes_resize = CM_VERSION_TABLE("", rows);
