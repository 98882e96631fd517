/* Windows sliding over the spatial axes of a (batch, channel, spatial..) tensor: the geometry that
 * pooling and convolution share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_COMMON_WINDOW_H
#define CM_OPS_COMMON_WINDOW_H

#include "graph/op.h"

struct cm_window {
    int rank; /* spatial axes */
    int64_t kernel[CM_MAX_RANK], stride[CM_MAX_RANK], dilation[CM_MAX_RANK];
    int64_t pad_begin[CM_MAX_RANK], pad_end[CM_MAX_RANK];
    bool same_upper, same_lower, valid; /* auto_pad; none of them: the pads count */
    bool ceil_mode;
};

/* Reads the attributes strides, dilations, pads, auto_pad, ceil_mode and kernel_shape; kernel (rank
 * of them, may be NULL) is used when there is no kernel_shape. Refuses lists of the wrong length
 * and numbers that are out of range. */
enum cm_status cm_window_read(const struct cm_node *node, int rank, const int64_t *kernel,
                              struct cm_window *out, struct cm_error *err) CM_MUST_CHECK;

/* Windows along axis for an input of this size; below 1 when none fits. Sets the pads of an
 * auto_pad. */
int64_t cm_window_count(struct cm_window *window, int axis, int64_t size);
/* Sets out to (batch, channels, windows along each axis) for the tensor type x; rank unknown stays
 * so. */
enum cm_status cm_window_infer(struct cm_infer *in, struct cm_window *window,
                               const struct cm_type *x, struct cm_dim channels,
                               const struct cm_type **out) CM_MUST_CHECK;

#endif
