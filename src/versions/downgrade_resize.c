/* Resize before it could say how coordinates are mapped, and Upsample. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/downgrade_step.h"

static bool mode_is(const struct cm_upgrade *down, const char *attribute, const char *value)
{
    return cm_str_is(cm_node_str(&down->node, attribute), value);
}

static enum cm_status resize_19(struct cm_upgrade *down)
{
    return cm_downgrade_refuse_word(down, "coordinate_transformation_mode", "half_pixel_symmetric");
}

/* An operand that is not there is an empty one. */
static enum cm_status resize_13(struct cm_upgrade *down)
{
    float none = 0;
    const struct cm_shape shape = CM_SHAPE(0);
    const struct cm_tensor empty = cm_tensor_borrow(CM_FLOAT, &shape, &none);
    for (size_t i = 1; i <= 2; i++)
        if (!cm_upgrade_input(down, i))
            cm_upgrade_set_input(down, i, cm_build_tensor(&down->build, &empty));
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
    const struct cm_shape shape = CM_SHAPE((int64_t)sizes.count);
    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, &shape, scales);
    *out = cm_build_tensor(&down->build, &tensor);
    return CM_OK;
}

/* What version 10 does: x / scale, and with 'nearest' the element below where an axis grows, the
 * one above where it shrinks. */
static enum cm_status resize_11(struct cm_upgrade *down)
{
    static const char *const dropped[] = {"coordinate_transformation_mode", "nearest_mode",
                                          "cubic_coeff_a", "exclude_outside",
                                          "extrapolation_value"};
    cm_value scales = cm_upgrade_input(down, 2);
    const struct cm_tensor *constant = NULL;
    bool shrinks = false, grows = false, known = true;

    if (cm_upgrade_input(down, 3))
        CM_TRY(scales_of_sizes(down, &scales));
    CM_TRY(cm_value_constant(down->build.graph->module, scales, &constant, down->build.err));
    known = constant != NULL;
    for (int64_t i = 0; known && i < cm_tensor_count(constant); i++) {
        shrinks = shrinks || cm_tensor_real(constant, i) < 1;
        grows = grows || cm_tensor_real(constant, i) > 1;
    }
    const bool nearest = mode_is(down, "mode", "nearest");
    const bool as_then =
        nearest ? known && (!grows || mode_is(down, "nearest_mode", "floor")) &&
                      (!shrinks || mode_is(down, "nearest_mode", "ceil"))
                : mode_is(down, "mode", "linear") && !cm_node_int(&down->node, "exclude_outside");
    const bool unmoved = known && !shrinks && !grows;
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
static enum cm_status resize_10(struct cm_upgrade *down)
{
    const struct cm_tensor *scales;
    CM_TRY(cm_value_constant(down->build.graph->module, cm_upgrade_input(down, 1), &scales,
                             down->build.err));
    for (int64_t i = 0; scales && i < cm_tensor_count(scales); i++)
        if (cm_tensor_real(scales, i) < 1)
            return cm_upgrade_fail(down, CM_UNSUPPORTED, "Upsample version 9 cannot shrink");
    return cm_upgrade_become(down, "Upsample", 9);
}

static enum cm_status upsample_9(struct cm_upgrade *down)
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

static enum cm_status upsample_7(struct cm_upgrade *down)
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

/* clang-format off */
static const struct cm_upgrade_row rows[] = {
    {"Resize", 10, resize_10, "is an Upsample"},
    {"Resize", 11, resize_11, "maps coordinates in one way"},
    {"Resize", 13, resize_13, "absent operands are empty ones"},
    {"Resize", 19, resize_19, NULL},
    {"Upsample", 7, upsample_7, "a scale for height and width"},
    {"Upsample", 9, upsample_9, "the scales are an attribute"},
};
/* clang-format on */
const struct cm_upgrade_table cm_downgrade_resize = CM_UPGRADE_TABLE("", rows);
