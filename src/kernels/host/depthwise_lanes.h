/* What loops over depthwise convolutions read: channels last, so that vectors hold neighbouring
 * channels of one place. depthwise_lanes.inc has the loops. */
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
