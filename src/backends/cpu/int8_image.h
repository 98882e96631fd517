/* Images of bytes with the channels of a pixel side by side: the layout in which convolutions of
 * codes read and write them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_INT8_IMAGE_H
#define CM_BACKENDS_CPU_INT8_IMAGE_H

#include "graph/op.h"
#include "tensor/layout.h"

struct cm_int8_image {
    struct cm_layout layout;
    int64_t images, channels, pixels;
};
/* For a tensor (images, channels, ..) of 8-bit elements. */
void cm_int8_image_init(struct cm_int8_image *image, const struct cm_shape *shape);

/* A window of up to three spatial axes, missing ones in front being 1. */
struct cm_int8_window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t taps, pixels, out_pixels;
    bool is_point; /* each result is of the one element at its place */
};
/* Reads the attributes of a node of convolution or pooling; kernel holds the sizes of its kernel.
 * Declines what is too large. */
bool cm_int8_window_read(struct cm_call *call, const struct cm_shape *x, const int64_t *kernel,
                         struct cm_int8_window *out);

/* Where the taps of `count` results begin in an image, from result `first` on, or `outside` for
 * those in the padding: CM_INT8_ROWS pointers for each tap, for each CM_INT8_ROWS results, the last
 * of which is repeated. */
enum { CM_INT8_ROWS = 8 };
void cm_int8_window_point(const struct cm_int8_window *w, const uint8_t *image, int64_t channels,
                          const uint8_t *outside, int64_t first, int count,
                          const uint8_t **pointers);

#endif
