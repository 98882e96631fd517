/* Rows of exponentials, for softmax and for losses. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_SOFTMAX_ROWS_H
#define CM_BACKENDS_CPU_SOFTMAX_ROWS_H

#include "base/compiler.h"

#include <stdint.h>

/* to = x - log(sum(exp(x))); to may be x, or NULL. Returns that logarithm. */
double cm_log_softmax_row(int64_t n, const float *x, float *to);
/* to = factor * exp(x) */
void cm_scaled_exp_row(int64_t n, const float *x, float factor, float *to);

#endif
