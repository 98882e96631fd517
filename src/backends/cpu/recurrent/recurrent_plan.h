/* What the fast kernels of recurrent operators and of their gradients share: sizes, weights as
 * panels, places in scratch memory. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_RECURRENT_RECURRENT_PLAN_H
#define CM_BACKENDS_CPU_RECURRENT_RECURRENT_PLAN_H

#include "backends/cpu/recurrent/recurrent_gates.h"
#include "base/parallel.h"
#include "graph/op.h"
#include "tensor/layout.h"

/* A product of so many columns reads rows of its left operand where they are, without copying them.
 */
enum { CM_FEW_COLUMNS = 32, CM_FEW_ROWS = 4 };

/* The weights of all directions as packed matrices (sgemm.h). By gates: transposed, and the columns
 * of all gates for a slice of the hidden state side by side, so that a slice is one product; a
 * gate's last slice is filled up with zeros. Otherwise: rows as they are. */
struct cm_weight_panels {
    struct cm_layout base;
    int64_t directions, gates, hidden; /* the weights have gates * hidden rows */
    int64_t input;                     /* and so many columns */
    bool by_gates, last_first;
};

struct cm_sgemm;

struct cm_recurrent_plan {
    enum cm_cell_kind kind;
    struct cm_recurrent_form form;
    int gates;
    int64_t steps, batch, input, hidden;
    int64_t slices;    /* of the hidden state */
    int64_t width;     /* columns of packed weights: slices * gates * CM_CELL_SLICE */
    int64_t state_row; /* of states in scratch: not a power of two, so that rows do not evict each
                          other */
    bool alone;        /* a step is too little work for several threads */
    struct cm_weight_panels w, r;
    /* Floats from the beginning of scratch. */
    int64_t floats;
    bool fits;
};

/* Sizes from an operator's X, W and R; false when they are too large. */
bool cm_recurrent_plan(const struct cm_node *node, const struct cm_tensor *x,
                       const struct cm_tensor *r, struct cm_recurrent_plan *plan);
/* Weights in this arrangement; false when they are too large. */
bool cm_recurrent_panels(const struct cm_recurrent_plan *plan, int64_t input, bool by_gates,
                         struct cm_weight_panels *out);
/* The packed weights of direction d. */
const float *cm_recurrent_weights(const struct cm_weight_panels *panels,
                                  const struct cm_tensor *packed, int d);

/* Calls fn for all slices of all directions, each thread's share of them at once. What a slice
 * gives must not depend on the others. */
void cm_recurrent_share(const struct cm_recurrent_plan *plan, cm_chunk_fn *fn, void *arg);

/* Of a chunk of those: calls fn for the slices of each direction. */
typedef void cm_slices_fn(const void *arg, int direction, int64_t begin, int64_t end);
void cm_recurrent_each_direction(const struct cm_recurrent_plan *plan, int64_t begin, int64_t end,
                                 cm_slices_fn *fn, const void *arg);
/* The same for each group of slices of one direction that is multiplied at once. In turns from both
 * ends: what was read last in one step is read first in the next, while it is in the cache. */
void cm_recurrent_each_group(const struct cm_recurrent_plan *plan, int64_t begin, int64_t end,
                             int64_t step, cm_slices_fn *fn, const void *arg);

/* A whole product, with the team. */
void cm_recurrent_multiply(const struct cm_sgemm *product);

/* Room for a * b * c floats in scratch, aligned; where it is. */
int64_t cm_recurrent_place(struct cm_recurrent_plan *plan, int64_t a, int64_t b, int64_t c);

/* Asks for that room, and for W and R, operands by number, as the plan's products read them. */
enum cm_status cm_recurrent_ask(struct cm_call *call, const struct cm_recurrent_plan *plan, int w,
                                int r) CM_MUST_CHECK;

static inline const struct cm_tensor *cm_recurrent_operand(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static inline struct cm_tensor *cm_recurrent_result(const struct cm_call *call, int o)
{
    return o < call->n_out ? call->out[o] : NULL;
}

#endif
