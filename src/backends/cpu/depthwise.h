/* The gradient of a depthwise convolution by its kernels, channels last: every channel has a kernel
 * of its own, so vectors hold neighbouring channels of one place. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_DEPTHWISE_H
#define CM_BACKENDS_CPU_DEPTHWISE_H

#include "base/compiler.h"

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

/* Parts that rows of results are summed up in, each by itself; decided by sizes alone. */
int64_t cm_depthwise_parts(const struct cm_depthwise_sizes *sizes);
/* dw: (channels, taps). scratch: for each part, (taps, channels). */
void cm_depthwise_weight_gradient(const struct cm_depthwise_sizes *sizes, const float *x,
                                  const float *dy, float *scratch, float *dw);
/* db: one number a channel. */
void cm_depthwise_bias_gradient(const struct cm_depthwise_sizes *sizes, const float *dy, float *db);

#endif
