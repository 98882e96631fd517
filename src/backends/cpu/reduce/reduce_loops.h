/* The loops of the Reduce operators: how each starts, folds elements into totals, joins totals and
 * finishes them, by element type. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_REDUCE_REDUCE_LOOPS_H
#define CM_BACKENDS_CPU_REDUCE_REDUCE_LOOPS_H

#include "base/text.h"
#include "tensor/dtype.h"

typedef void cm_start_fn(int64_t count, void *totals);
/* count elements side by side into totals[0]. */
typedef void cm_fold_fn(int64_t count, const void *x, void *totals);
/* Element i of each of `rows` rows, `stride` elements apart, into totals[i], row after row. */
typedef void cm_fold_rows_fn(int64_t count, int64_t rows, int64_t stride, const void *x,
                             void *totals);
/* Into totals[i] what more[i] has gathered. */
typedef void cm_join_totals_fn(int64_t count, const void *more, void *totals);
/* Results of count totals, each of `terms` elements. */
typedef void cm_finish_fn(int64_t count, const void *totals, int64_t terms, void *y);

/* One element type's loops; no start: there is no kernel. A total takes 16 bytes at most. */
struct cm_reduce_loops {
    cm_start_fn *start;
    cm_fold_fn *along;
    cm_fold_rows_fn *across;
    cm_join_totals_fn *join;
    cm_finish_fn *finish;
};

/* The loops of a Reduce operator by element type; NULL for another operator. */
const struct cm_reduce_loops *cm_reduce_loops(struct cm_str op_type);
#endif
