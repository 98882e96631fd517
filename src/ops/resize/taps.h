/* Resizing along one axis: which elements of the input make an element of the output, and with
 * which weights. Resize is separable, so this is all of its arithmetic. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RESIZE_TAPS_H
#define CM_OPS_RESIZE_TAPS_H

#include "graph/op.h"

enum cm_resize_mode { CM_RESIZE_NEAREST, CM_RESIZE_LINEAR, CM_RESIZE_CUBIC };
enum cm_resize_coordinates {
    CM_COORDINATES_HALF_PIXEL,
    CM_COORDINATES_HALF_PIXEL_SYMMETRIC,
    CM_COORDINATES_PYTORCH_HALF_PIXEL,
    CM_COORDINATES_ALIGN_CORNERS,
    CM_COORDINATES_ASYMMETRIC,
    CM_COORDINATES_CROP,
    CM_COORDINATES_TF_HALF_PIXEL,
};
enum cm_resize_rounding {
    CM_ROUND_PREFER_FLOOR,
    CM_ROUND_PREFER_CEIL,
    CM_ROUND_FLOOR,
    CM_ROUND_CEIL,
};
enum cm_resize_policy { CM_RESIZE_STRETCH, CM_RESIZE_NOT_LARGER, CM_RESIZE_NOT_SMALLER };

/* The attributes. */
struct cm_resize {
    enum cm_resize_mode mode;
    enum cm_resize_coordinates coordinates;
    enum cm_resize_rounding rounding;
    enum cm_resize_policy policy;
    double cubic_a, extrapolation;
    bool exclude_outside, antialias;
    int n_axes; /* those that roi, scales and sizes speak of */
    int axes[CM_MAX_RANK];
};

/* One axis of one call. */
struct cm_resize_axis {
    int64_t in, out;
    double scale;
    double roi_start, roi_end;
    bool identity; /* every element is itself */
};

enum cm_status cm_resize_read(const struct cm_node *node, int rank, struct cm_resize *out,
                              struct cm_error *err) CM_MUST_CHECK;

/* The length of an axis under a scale. */
enum cm_status cm_resize_length(int64_t in, double scale, int64_t *out,
                                struct cm_error *err) CM_MUST_CHECK;
/* All axes of a tensor of shape x. Operands are NULL where absent; scales and sizes without
 * elements count as absent too. */
enum cm_status cm_resize_axes(const struct cm_resize *resize, const struct cm_shape *x,
                              const struct cm_tensor *roi, const struct cm_tensor *scales,
                              const struct cm_tensor *sizes, struct cm_resize_axis *out,
                              struct cm_error *err) CM_MUST_CHECK;

/* The element of the input that a nearest element of the output is; -1: it lies outside, and is
 * extrapolated. */
int64_t cm_resize_nearest(const struct cm_resize *resize, const struct cm_resize_axis *axis,
                          int64_t o);
/* Taps that each element of the output has. */
int64_t cm_resize_tap_count(const struct cm_resize *resize, double scale);
/* Elements of the input and their weights for element o of the output, as many as there are taps;
 * false when it lies outside and is extrapolated. */
bool cm_resize_taps(const struct cm_resize *resize, const struct cm_resize_axis *axis, int64_t o,
                    int64_t *index, double *weight);

#endif
