/* What the Reduce operators share: shapes, the walk over the elements, and the form in which a
 * reduction is given. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_REDUCE_REDUCTION_H
#define CM_OPS_REDUCE_REDUCTION_H

#include "graph/op.h"
#include "ops/common/quantity.h"

/* One number of n terms, by the class of their type. */
struct cm_reduction {
    double (*of_reals)(int64_t n, const double *x);
    int64_t (*of_signed)(int64_t n, const int64_t *x); /* NULL: only floats have a kernel */
    uint64_t (*of_unsigned)(int64_t n, const uint64_t *x);
    bool wraps; /* integers wrap, as C's do; else they are the nearest that the type holds */
    /* The gradient of the data as a formula (graph/node_formula.h) that begins with "x, y, dy,
     * axes: ", y and dy in the shape that keepdims would give. */
    const char *slope;
    cm_quantity_pair_fn *of_numbers; /* may be NULL */
};

enum cm_status cm_reduce_infer(struct cm_infer *in);
enum cm_status cm_reduce_prepare(struct cm_call *call);
enum cm_status cm_reduce_run(struct cm_call *call); /* op->arg is a struct cm_reduction */
enum cm_status cm_reduce_grad(struct cm_grad *g);   /* the same */

#define CM_REDUCTION(row)                                                                          \
    .infer = cm_reduce_infer, .prepare = cm_reduce_prepare, .run = cm_reduce_run,                  \
    .grad = cm_reduce_grad, .cost.work = cm_work_linear, .arg = &(row)

#endif
