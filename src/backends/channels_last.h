/* Channels last, for kernels of our own between those of oneDNN: its convolutions read and write
 * images so, and backends know each other by this alone. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CHANNELS_LAST_H
#define CM_BACKENDS_CHANNELS_LAST_H

#include "graph/op.h"

enum { CM_CHANNELS_LAST_AXES = 3 }; /* spatial ones, at most */

/* Is there such a layout? Without oneDNN there is none. */
bool cm_channels_last_found(void);
/* In prepare: that of a tensor of this shape; NULL where it is row by row. */
enum cm_status cm_channels_last(struct cm_call *call, const struct cm_shape *shape,
                                const struct cm_layout **out) CM_MUST_CHECK;

/* How the window of a convolution slides, by spatial axis. */
struct cm_conv_window {
    int rank;
    int64_t kernel[CM_CHANNELS_LAST_AXES], stride[CM_CHANNELS_LAST_AXES];
    int64_t dilation[CM_CHANNELS_LAST_AXES];
    int64_t pad_begin[CM_CHANNELS_LAST_AXES], pad_end[CM_CHANNELS_LAST_AXES];
};
/* In accepts: the window of a Conv with these weights over x, whose result is output 0. Declines
 * what is not of floats, empty, or has negative pads. */
bool cm_conv_window_read(struct cm_call *call, const struct cm_node *conv, const struct cm_shape *x,
                         const struct cm_shape *weights, struct cm_conv_window *out);

#endif
