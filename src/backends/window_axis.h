/* How the window of a convolution or pooling slides along one spatial axis, for the backends: the
 * attributes of the node, with the pads that an auto_pad means for the sizes at hand. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_WINDOW_AXIS_H
#define CM_BACKENDS_WINDOW_AXIS_H

#include "graph/op.h"

/* Of any number that is read: products of two, and sums of products, fit in 64 bits. */
enum { CM_WINDOW_MOST = 1 << 20 };

struct cm_window_axis {
    int64_t kernel, stride, dilation, pad_begin, pad_end;
};

/* Reads spatial axis `axis` of `rank`, which has `size` elements and gives `result` windows. False
 * with the reason where a number is out of range. */
bool cm_window_axis_read(struct cm_call *call, const struct cm_node *node, int axis, int rank,
                         int64_t kernel, int64_t size, int64_t result, struct cm_window_axis *out);

#endif
