/* Loop, Scan and SequenceMap in one form, for their gradients, and how the states that iterations
 * began with are kept for the way back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_ITERATION_H
#define CM_OPS_CONTROL_ITERATION_H

#include "ops/control/backward_loop.h"
#include "ops/control/drawn_values.h"

/* What is kept of a state. */
enum cm_keeping {
    CM_KEEP_STACKED, /* it keeps its shape: a scan output */
    CM_KEEP_LISTED,  /* it may not: a sequence, one item for each iteration and one for the end */
    CM_KEEP_LAST, /* a sequence that an item is put into at a known place: it is taken out again */
    CM_KEEP_NOTHING, /* another sequence, or an optional, which cannot be an item: computed again */
};

/* A body input after the states. */
struct cm_source {
    enum {
        CM_SOURCE_SLICES, /* of a tensor along axis */
        CM_SOURCE_ITEMS,  /* of a sequence */
        CM_SOURCE_WHOLE,  /* the same value each time */
    } kind;
    int operand;
    int64_t axis, direction;
    cm_value inside; /* in the backward body */
};

/* Body inputs: [iteration, condition], states, sources, and in the copy what the body drew;
 * outputs: [condition], states, slices or items. */
struct cm_iteration {
    struct cm_grad *g;
    struct cm_graph *body;    /* a copy to copy from: the node's own is changed to save states */
    bool is_loop, is_map;     /* neither: Scan */
    size_t head_in, head_out; /* 2 and 1 for Loop, else 0 */
    size_t n_states, n_sources, n_results;
    struct cm_source *sources;
    struct cm_int64s out_axes, out_directions;
    enum cm_keeping *keeping; /* by state */
    int64_t *places;          /* by state of which the last is kept: where the new item is in it */
    cm_value *after;          /* by the same: the state after the iteration, inside */
    cm_value *saved;          /* by state: what was kept of it, outside */
    cm_value numbers;         /* of the iterations, stacked; Loop only */
    struct cm_drawn drawn;    /* in the node's own body */
    cm_value *drawn_saved;    /* by those: stacked, or a sequence */
};

static inline int64_t cm_listed(struct cm_int64s list, size_t i)
{
    return i < list.count ? list.items[i] : 0;
}

/* Decides what is kept of each state. */
void cm_iteration_plan(struct cm_iteration *it);
/* Makes the forward node give that, and for Loop the numbers of its iterations; g->node may become
 * another. */
enum cm_status cm_iteration_save(struct cm_iteration *it) CM_MUST_CHECK;
/* The states that the iteration began with, inside the backward body. */
enum cm_status cm_iteration_restore(struct cm_iteration *it, struct cm_backward *b,
                                    cm_value *states) CM_MUST_CHECK;

#endif
