/* What the Reduce operators share: shapes, the walk over the elements, and the form in which a
 * reduction's loops are given. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_REDUCE_REDUCTION_H
#define CM_OPS_REDUCE_REDUCTION_H

#include "graph/op.h"
#include "ops/common/quantity.h"

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
    cm_finish_fn *finish;
};

/* The gradient of the data, given the forward result and its gradient in the shape that keepdims
 * would give. */
typedef cm_value cm_reduce_slope_fn(struct cm_grad *g, cm_value x, cm_value y, cm_value dy);

struct cm_reduction {
    const struct cm_reduce_loops *loops; /* by element type */
    cm_reduce_slope_fn *slope;
    cm_quantity_pair_fn *of_numbers; /* may be NULL */
    cm_join_totals_fn *join;         /* of totals of floats, which may be gathered in parts */
};

enum cm_status cm_reduce_infer(struct cm_infer *in);
enum cm_status cm_reduce_prepare(struct cm_call *call);
enum cm_status cm_reduce_run(struct cm_call *call); /* op->arg is a struct cm_reduction */
enum cm_status cm_reduce_grad(struct cm_grad *g);   /* the same */
/* Sums over the axes of the forward node, kept as 1. */
cm_value cm_reduce_sum_like(struct cm_grad *g, cm_value terms);

#define CM_REDUCTION(row)                                                                          \
    .infer = cm_reduce_infer, .prepare = cm_reduce_prepare, .run = cm_reduce_run,                  \
    .grad = cm_reduce_grad, .work = cm_work_linear, .arg = &(row)

#endif
