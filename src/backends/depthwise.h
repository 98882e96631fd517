/* Depthwise convolutions and their gradients by the kernels, channels last: every channel has a
 * kernel of its own, so vectors hold neighbouring channels of one place. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_DEPTHWISE_H
#define CM_BACKENDS_DEPTHWISE_H

#include "base/compiler.h"

#include <stdbool.h>

enum { CM_DEPTHWISE_LANES = 16 }; /* at least as many channels, for any build */

/* Sums, over results along one row, of their gradients times what they read at each of a row of
 * taps. Steps count floats. */
struct cm_depthwise_sums {
    int64_t channels, count;
    const float *dy, *x;
    int64_t dy_step, x_step;
    int64_t columns, column_step; /* taps, and the distance in x between them */
    float *sums;                  /* added to, one tap after the other, `channels` apart */
};
typedef void cm_depthwise_add_fn(const struct cm_depthwise_sums *sums);
cm_depthwise_add_fn *cm_depthwise_add(void); /* of the best instruction set that the machine has */

/* Of two axes. */
struct cm_depthwise_sizes {
    int64_t images, channels;
    int64_t image[2], result[2], kernel[2], stride[2], dilation[2], pad[2];
};

/* ---- the convolution ---- */

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
    int64_t inner_begin, inner_end; /* results of which no tap lies outside */
    const float *bias;              /* NULL: none */
};
typedef void cm_depthwise_convolve_fn(const struct cm_depthwise_block *block);
cm_depthwise_convolve_fn *cm_depthwise_convolve(void); /* of the best instruction set */

/* kernels (channels, taps) as the convolution reads them: (taps, channels). */
void cm_depthwise_pack(int64_t channels, int64_t taps, const float *kernels, float *packed);

/* What is done to results while they are in the cache: places [place, place + places) of all
 * images, with all their channels. */
typedef void cm_depthwise_finish_fn(const void *arg, int64_t place, int64_t places, float *y);

struct cm_depthwise_run {
    struct cm_depthwise_sizes sizes;
    const float *x, *kernels, *bias; /* kernels: packed; bias may be NULL */
    float *y;
    cm_depthwise_finish_fn *finish; /* NULL: none */
    const void *finish_arg;
};
void cm_depthwise_run(const struct cm_depthwise_run *run);

/* ---- the gradient by the kernels ---- */

/* Parts that rows of results are summed up in, each by itself; decided by sizes alone. */
int64_t cm_depthwise_parts(const struct cm_depthwise_sizes *sizes);
/* dw: (channels, taps). scratch: for each part, (taps, channels). */
void cm_depthwise_weight_gradient(const struct cm_depthwise_sizes *sizes, const float *x,
                                  const float *dy, float *scratch, float *dw);
/* db: one number a channel. */
void cm_depthwise_bias_gradient(const struct cm_depthwise_sizes *sizes, const float *dy, float *db);

#endif
