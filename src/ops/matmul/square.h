/* What operators on square matrices share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_MATMUL_SQUARE_H
#define CM_OPS_MATMUL_SQUARE_H

#include "graph/op.h"

/* Refuses input 0 where its last two axes surely differ, or are not there. */
enum cm_status cm_infer_square(struct cm_infer *in) CM_MUST_CHECK;

static inline void cm_swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

#endif
