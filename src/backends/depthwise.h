/* Depthwise convolutions and their gradients by the kernels, channels last: every channel has a
 * kernel of its own, so vectors hold neighbouring channels of one place. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_DEPTHWISE_H
#define CM_BACKENDS_DEPTHWISE_H

#include "kernels/host/depthwise_lanes.h"

enum { CM_DEPTHWISE_LANES = 16 }; /* at least as many channels, for any build */

typedef void cm_depthwise_add_fn(const struct cm_depthwise_sums *sums);
cm_depthwise_add_fn *cm_depthwise_add(void); /* of the best instruction set that the machine has */

/* Of two axes. */
struct cm_depthwise_sizes {
    int64_t images, channels;
    int64_t image[2], result[2], kernel[2], stride[2], dilation[2], pad[2];
};

/* ---- the convolution ---- */

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
