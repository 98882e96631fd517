/* Rows of exponentials, for softmax and for losses. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_NORM_SOFTMAX_ROWS_H
#define CM_BACKENDS_CPU_NORM_SOFTMAX_ROWS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* to = x - log(sum(exp(x))); to may be x, or NULL. Returns that logarithm. */
double cm_log_softmax_row(int64_t n, const float *x, float *to);
/* to = factor * exp(x), of x that are not above 0; to may be x. */
void cm_scaled_exp_row(int64_t n, const float *x, float factor, float *to);

enum { CM_SOFT_LANES = 16, CM_SOFT_COLUMNS = 4 * CM_SOFT_LANES };

/* Softmax, or its logarithm, of n elements each of CM_SOFT_LANES or CM_SOFT_COLUMNS columns side by
 * side; stride is from one element of a column to the next. to may be x. */
void cm_softmax_columns(int64_t n, int64_t stride, int64_t lanes, bool logs, const float *x,
                        float *to);

#endif
