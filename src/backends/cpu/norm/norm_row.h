/* One row of floats that is normalized together, for the kernels of normalizations. One pass takes
 * its sums, relative to its first element (see norm_batch.c), one writes it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_NORM_NORM_ROW_H
#define CM_BACKENDS_CPU_NORM_NORM_ROW_H

#include "graph/op.h"

enum { NORM_PART_ELEMENTS = 1 << 13 }; /* worth a thread */

/* One row of n elements. */
struct norm_row {
    int64_t n;
    const float *x, *dy;
    float *y;                  /* y or dx */
    const float *scale, *bias; /* of each element; bias may be NULL */
    float mean, inverse;
    float dy_mean, along; /* gradient: means of g = dy * scale, and of g * xhat */
    float *d_scale, *d_bias;
    double sums[2]; /* of x and x^2, less first; then of g and g * xhat */
    float first;
};

/* sums: of x - first, and of its squares */
void cm_norm_sum_row(struct norm_row *r);
/* Mean and deviation of the row at r->x; without a mean, that of its squares. */
void cm_norm_take_statistics(struct norm_row *r, bool centred, double epsilon);
/* y = (x - mean) * inverse * scale + bias */
void cm_norm_write_row(const struct norm_row *r);
/* The same with one factor, in inverse, and one bias. */
void cm_norm_write_plane(const struct norm_row *r);
/* sums: of g = dy * scale and of g * xhat; adds to the gradients of scale and bias. */
void cm_norm_sum_slopes(struct norm_row *r);
/* y = inverse * (g - dy_mean - xhat * along) */
void cm_norm_write_slopes(const struct norm_row *r);

/* Are all operands and results float, and is operand x not empty? Declines otherwise. */
bool cm_norm_accepts_floats(struct cm_call *call, int x);

#endif
