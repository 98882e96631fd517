/* Coordinates and weights of Resize. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/taps.h"

#include <math.h>

/* Finds the value of attribute `name` among the words of a list that ends with NULL. */
static enum cm_status choose(const struct cm_node *node, const char *name, const char *const *words,
                             int *out, struct cm_error *err)
{
    const struct cm_str value = cm_node_str(node, name);
    for (*out = 0; words[*out]; ++*out)
        if (cm_str_is(value, words[*out]))
            return CM_OK;
    return cm_fail(err, CM_BAD_MODEL, "attribute '%s' is '%.*s', which ONNX does not define", name,
                   CM_STR_FMT(value));
}

/* Each in the order of its enumeration. */
static const char *const mode_words[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinate_words[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
static const char *const rounding_words[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                             "ceil", NULL};
static const char *const policy_words[] = {"stretch", "not_larger", "not_smaller", NULL};

static enum cm_status read_axes(const struct cm_node *node, int rank, struct cm_resize *out,
                                struct cm_error *err)
{
    const struct cm_int64s list = cm_node_ints(node, "axes");
    bool seen[CM_MAX_RANK] = {false};
    if (!list.count) {
        out->n_axes = rank;
        for (int i = 0; i < rank; i++)
            out->axes[i] = i;
        return CM_OK;
    }
    if (list.count > (size_t)rank)
        return cm_fail(err, CM_BAD_MODEL, "axes has %zu entries for rank %d", list.count, rank);
    out->n_axes = (int)list.count;
    for (int i = 0; i < out->n_axes; i++) {
        if (!cm_axis_fix(list.items[i], rank, &out->axes[i]))
            return cm_fail(err, CM_BAD_MODEL, "axis %lld is out of range for rank %d",
                           (long long)list.items[i], rank);
        if (seen[out->axes[i]])
            return cm_fail(err, CM_BAD_MODEL, "axis %d is named twice", out->axes[i]);
        seen[out->axes[i]] = true;
    }
    return CM_OK;
}

enum cm_status cm_resize_read(const struct cm_node *node, int rank, struct cm_resize *out,
                              struct cm_error *err)
{
    int mode, coordinates, rounding, policy;
    memset(out, 0, sizeof *out);
    CM_TRY(choose(node, "mode", mode_words, &mode, err));
    CM_TRY(choose(node, "coordinate_transformation_mode", coordinate_words, &coordinates, err));
    CM_TRY(choose(node, "nearest_mode", rounding_words, &rounding, err));
    CM_TRY(choose(node, "keep_aspect_ratio_policy", policy_words, &policy, err));
    out->mode = (enum cm_resize_mode)mode;
    out->coordinates = (enum cm_resize_coordinates)coordinates;
    out->rounding = (enum cm_resize_rounding)rounding;
    out->policy = (enum cm_resize_policy)policy;
    out->cubic_a = (double)cm_node_float(node, "cubic_coeff_a");
    out->extrapolation = (double)cm_node_float(node, "extrapolation_value");
    out->exclude_outside = cm_node_int(node, "exclude_outside") != 0;
    out->antialias = cm_node_int(node, "antialias") != 0;
    if (out->antialias && out->mode == CM_RESIZE_NEAREST)
        return cm_fail(err, CM_BAD_MODEL, "antialias is not defined for mode 'nearest'");
    return read_axes(node, rank, out, err);
}

/* The product is made in float, as ONNX's inference and other runtimes make it: 10 * 0.7 is 7. */
enum cm_status cm_resize_length(int64_t in, double scale, int64_t *out, struct cm_error *err)
{
    if (!(scale > 0) || scale > (double)INT32_MAX)
        return cm_fail(err, CM_BAD_ARGUMENT, "a scale is %g, must be above 0", scale);
    *out = in;
    if (scale == 1)
        return CM_OK;
    const float length = (float)in * (float)scale;
    if (length > 0x1p62F)
        return cm_fail(err, CM_BAD_ARGUMENT, "an axis of %lld scaled by %g is too long",
                       (long long)in, scale);
    *out = (int64_t)length;
    return CM_OK;
}

static enum cm_status length_by_size(int64_t in, int64_t size, double scale,
                                     enum cm_resize_policy policy, int64_t *out,
                                     struct cm_error *err)
{
    if (size < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "a size is %lld, must not be negative",
                       (long long)size);
    if (in == 0 && size > 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "an axis without elements cannot be resized to %lld",
                       (long long)size);
    *out = size;
    if (policy == CM_RESIZE_STRETCH)
        return CM_OK;
    const double length = floor(scale * (double)in + 0.5);
    if (length > 0x1p62)
        return cm_fail(err, CM_BAD_ARGUMENT, "an axis of %lld scaled by %g is too long",
                       (long long)in, scale);
    *out = (int64_t)length;
    return CM_OK;
}

static enum cm_status axes_by_sizes(const struct cm_resize *resize, const struct cm_shape *x,
                                    const struct cm_tensor *sizes, struct cm_resize_axis *out,
                                    struct cm_error *err)
{
    const bool smallest = resize->policy == CM_RESIZE_NOT_LARGER;
    double common = smallest ? INFINITY : 0;
    for (int i = 0; i < resize->n_axes; i++) {
        const int64_t in = x->dims[resize->axes[i]];
        const double scale = in ? (double)cm_tensor_int(sizes, i) / (double)in : 1;
        out[resize->axes[i]].scale = scale;
        common = smallest ? fmin(common, scale) : fmax(common, scale);
    }
    for (int i = 0; i < resize->n_axes; i++) {
        struct cm_resize_axis *axis = &out[resize->axes[i]];
        if (resize->policy != CM_RESIZE_STRETCH)
            axis->scale = common;
        CM_TRY(length_by_size(axis->in, cm_tensor_int(sizes, i), axis->scale, resize->policy,
                              &axis->out, err));
    }
    return CM_OK;
}

static enum cm_status check_length(const char *what, const struct cm_tensor *list, int64_t needs,
                                   struct cm_error *err)
{
    if (cm_tensor_count(list) == needs)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT, "%s has %lld elements, needs %lld", what,
                   (long long)cm_tensor_count(list), (long long)needs);
}

enum cm_status cm_resize_axes(const struct cm_resize *resize, const struct cm_shape *x,
                              const struct cm_tensor *roi, const struct cm_tensor *scales,
                              const struct cm_tensor *sizes, struct cm_resize_axis *out,
                              struct cm_error *err)
{
    const int n = resize->n_axes;
    const bool by_scales = scales && cm_tensor_count(scales) > 0;
    const bool by_sizes = sizes && cm_tensor_count(sizes) > 0;
    const bool crop = resize->coordinates == CM_COORDINATES_CROP;
    for (int i = 0; i < x->rank; i++)
        out[i] = (struct cm_resize_axis){x->dims[i], x->dims[i], 1, 0, 1, true};
    if (by_scales == by_sizes && n > 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "needs either scales or sizes, has %s",
                       by_sizes ? "both" : "neither");
    if (by_sizes) {
        CM_TRY(check_length("sizes", sizes, n, err));
        CM_TRY(axes_by_sizes(resize, x, sizes, out, err));
    }
    if (by_scales)
        CM_TRY(check_length("scales", scales, n, err));
    if (crop && !roi)
        return cm_fail(err, CM_BAD_ARGUMENT, "tf_crop_and_resize needs a roi");
    if (crop)
        CM_TRY(check_length("roi", roi, 2 * (int64_t)n, err));
    for (int i = 0; i < n; i++) {
        struct cm_resize_axis *axis = &out[resize->axes[i]];
        if (by_scales) {
            axis->scale = cm_tensor_real(scales, i);
            CM_TRY(cm_resize_length(axis->in, axis->scale, &axis->out, err));
        }
        if (crop) {
            axis->roi_start = cm_tensor_real(roi, i);
            axis->roi_end = cm_tensor_real(roi, n + i);
        }
        axis->identity =
            axis->scale == 1 && axis->in == axis->out && axis->roi_start == 0 && axis->roi_end == 1;
    }
    return CM_OK;
}

/* The coordinate in the input that element o of the output is at. The width of the output is what
 * the scale makes it, not rounded down to elements. */
static double coordinate(const struct cm_resize *resize, const struct cm_resize_axis *axis,
                         int64_t o)
{
    const double x = (double)o, in = (double)axis->in, scale = axis->scale, width = scale * in;
    switch (resize->coordinates) {
    case CM_COORDINATES_HALF_PIXEL:
        break;
    case CM_COORDINATES_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)axis->out / width) + (x + 0.5) / scale - 0.5;
    case CM_COORDINATES_PYTORCH_HALF_PIXEL:
        if (axis->out <= 1)
            return 0;
        break;
    case CM_COORDINATES_ALIGN_CORNERS:
        return width == 1 ? 0 : x * (in - 1) / (width - 1);
    case CM_COORDINATES_ASYMMETRIC:
        return x / scale;
    case CM_COORDINATES_CROP: {
        const double range = (axis->roi_end - axis->roi_start) * (in - 1);
        return (width == 1 ? range / 2 : x * range / (width - 1)) + axis->roi_start * (in - 1);
    }
    case CM_COORDINATES_TF_HALF_PIXEL: /* ended with version 11, but producers still write it */
        return (x + 0.5) / scale;
    }
    return (x + 0.5) / scale - 0.5;
}

/* Only cropping extrapolates; NaN, from a broken roi, lies outside. */
static bool outside(const struct cm_resize *resize, const struct cm_resize_axis *axis, double x)
{
    return resize->coordinates == CM_COORDINATES_CROP && !(x >= 0 && x <= (double)(axis->in - 1));
}

/* Far away is as good as the edge, and fits in an integer. */
static double near(const struct cm_resize_axis *axis, double x)
{
    const double most = (double)axis->in + 1;
    return x > most ? most : x >= -2 ? x : -2;
}

static int64_t clamp(const struct cm_resize_axis *axis, int64_t i)
{
    return i < 0 ? 0 : i < axis->in ? i : axis->in - 1;
}

int64_t cm_resize_nearest(const struct cm_resize *resize, const struct cm_resize_axis *axis,
                          int64_t o)
{
    const double exact = coordinate(resize, axis, o);
    if (outside(resize, axis, exact))
        return -1;
    const double x = near(axis, exact), low = floor(x), ratio = x - low;
    bool up = false;
    switch (resize->rounding) {
    case CM_ROUND_PREFER_FLOOR:
        up = ratio > 0.5;
        break;
    case CM_ROUND_PREFER_CEIL:
        up = ratio >= 0.5;
        break;
    case CM_ROUND_FLOOR:
        break;
    case CM_ROUND_CEIL:
        up = ratio > 0;
        break;
    }
    return clamp(axis, (int64_t)low + up);
}

/* How much wider the filter is than between two elements of the input. */
static double stretch(const struct cm_resize *resize, double scale)
{
    return resize->antialias && scale < 1 ? 1 / scale : 1;
}

int64_t cm_resize_tap_count(const struct cm_resize *resize, double scale)
{
    const double reach = resize->mode == CM_RESIZE_CUBIC ? 2 : 1;
    return 2 * (int64_t)ceil(reach * stretch(resize, scale));
}

/* The filter at a distance, in units of its own grid. */
static double filter(const struct cm_resize *resize, double distance)
{
    const double x = fabs(distance), a = resize->cubic_a;
    if (resize->mode == CM_RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

bool cm_resize_taps(const struct cm_resize *resize, const struct cm_resize_axis *axis, int64_t o,
                    int64_t *index, double *weight)
{
    const double exact = coordinate(resize, axis, o);
    const int64_t n = cm_resize_tap_count(resize, axis->scale);
    const double unit = 1 / stretch(resize, axis->scale);
    if (outside(resize, axis, exact))
        return false;
    /* Half of the taps lie before x, half behind or at it. */
    const double x = near(axis, exact), before = ceil(x) - 1;
    const int64_t first = (int64_t)before + 1 - n / 2;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool out_of_it = first + i < 0 || first + i >= axis->in;
        index[i] = clamp(axis, first + i);
        weight[i] = filter(resize, ((double)(first + i) - x) * unit);
        if (out_of_it && resize->exclude_outside)
            weight[i] = 0;
        sum += weight[i];
    }
    if ((resize->antialias || resize->exclude_outside) && sum != 0)
        for (int64_t i = 0; i < n; i++)
            weight[i] /= sum;
    return true;
}
