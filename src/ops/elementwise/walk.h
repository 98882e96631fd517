/* Walking several operands that broadcast to one result: as few and as long inner runs as the
 * shapes allow. For operators of three or more operands, or of two with different types; binary.h
 * has the shorter way for the others. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_WALK_H
#define CM_OPS_ELEMENTWISE_WALK_H

#include "graph/op.h"

/* Where one operand goes. */
struct cm_walk_operand {
    int64_t step; /* within a run: 1, or 0 for one element repeated */
    int64_t strides[CM_MAX_RANK];
};

struct cm_walk {
    int n_operands;
    int rank;           /* of the axes outside a run, innermost first */
    int64_t count, run; /* elements of the result, and of one run */
    int64_t dims[CM_MAX_RANK];
    struct cm_walk_operand operands[];
};

/* In prepare: the walk of all operands of a call over its output 0, kept as the call's state. */
struct cm_walk *cm_walk_plan(struct cm_call *call);
/* From one run to the next: index (rank entries) and at (one entry per operand, in elements) begin
 * as zeros. */
void cm_walk_next(const struct cm_walk *walk, int64_t *index, int64_t *at);

#endif
