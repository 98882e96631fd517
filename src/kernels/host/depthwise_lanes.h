/* What loops over depthwise convolutions read: channels last, so that vectors hold neighbouring
 * channels of one place. depthwise_lanes.inc has the loops.
 *
 * Compiled code has other loops, kernels/depthwise.inc: its tensors have channels first, and
 * vectors lie along rows. Microseconds with AVX-512, one core, these loops, those, and turning
 * image and result for these ones: 32 channels of 112 x 112, 3 x 3: 88, 95, 213; 240 of 28 x 28, 5
 * x 5: 111, 124, 101; 480 of 14 x 14, 5 x 5: 51, 90, 51; 960 of 7 x 7, 3 x 3: 10, 43, 25. So each
 * is the best for its layout where images are large; where they are small, turning some channels in
 * scratch memory would pay in compiled code. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_KERNELS_HOST_DEPTHWISE_LANES_H
#define CM_KERNELS_HOST_DEPTHWISE_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* Sums, over results along one row, of their gradients times what they read at each of a row of
 * taps. Steps count floats. */
struct cm_depthwise_sums {
    int64_t channels, count;
    const float *dy, *x;
    int64_t dy_step, x_step;
    int64_t columns, column_step; /* taps, and the distance in x between them */
    float *sums;                  /* added to, one tap after the other, `channels` apart */
};

enum {
    CM_DEPTHWISE_ROWS = 8,  /* of results that are computed together, at most */
    CM_DEPTHWISE_TAPS = 64, /* along a row, at most */
};

/* Some rows of results, whole. */
struct cm_depthwise_block {
    int64_t channels;
    int rows;
    /* By row: the rows of taps that lie inside, what the first of them reads and its taps, and the
     * results. */
    int64_t tap_rows[CM_DEPTHWISE_ROWS];
    const float *x[CM_DEPTHWISE_ROWS], *kernels[CM_DEPTHWISE_ROWS];
    float *y[CM_DEPTHWISE_ROWS];
    int64_t x_tap_row; /* in floats: from one row of taps to the next */
    /* Along a row: */
    int64_t image, results, taps, stride, dilation, pad;
    int64_t inner_begin, inner_end; /* results whose taps all lie inside */
    const float *bias;              /* NULL: none */
};

#endif
