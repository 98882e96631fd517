/* Walking several operands that broadcast to one result: as few and as long inner runs as the
 * shapes allow. Positions are counted in elements; element types are the caller's business. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_WALK_H
#define CM_TENSOR_WALK_H

#include "tensor/shape.h"

/* The result is `count` elements in runs of `run`, one behind the other. Within a run operand i
 * goes on by step[i]: 1, or 0 for one element repeated (a run of one element has step 1). From run
 * to run the axes outside are counted up, innermost first. */
struct cm_walk {
    int n_operands;
    int rank; /* of the axes outside a run */
    int64_t count, run;
    int64_t *step, *dims;
    int64_t *strides; /* of operand i along axis a: strides[a * n_operands + i] */
};

/* Bytes of the walk of a result of this rank. */
size_t cm_walk_size(int n_operands, int rank);
/* Plans a walk in memory of that size, aligned for int64_t. Each operand broadcasts to result; NULL
 * and a single element of any rank are elements that repeat. */
struct cm_walk *cm_walk_plan(void *memory, const struct cm_shape *result, int n_operands,
                             const struct cm_shape *const *operands);
/* Where run number `run` is: index has CM_MAX_RANK entries, at one per operand. */
void cm_walk_seek(const struct cm_walk *walk, int64_t run, int64_t *index, int64_t *at);
/* From one run to the next. */
void cm_walk_next(const struct cm_walk *walk, int64_t *index, int64_t *at);

#endif
