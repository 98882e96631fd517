/* The node that goes over the iterations of another in reverse, as it is put together: a Scan where
 * all that it carries are tensors that keep their shapes, else a Loop, which may also carry
 * sequences, changing shapes, and run no iteration in every runtime. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_BACKWARD_LOOP_H
#define CM_OPS_CONTROL_BACKWARD_LOOP_H

#include "base/array.h"
#include "graph/op.h"

/* A gradient that comes slice by slice. */
struct cm_backward_part {
    cm_value like; /* what it is the gradient of */
    bool items;    /* of a sequence; otherwise slices of a tensor along axis */
    int64_t axis, direction;
    cm_value state; /* Loop: the parts so far, inside */
};

struct cm_backward {
    struct cm_builder *outer;
    struct cm_arena *arena;
    bool is_scan;
    cm_value trips; /* outside; Loop only: how often the forward body ran */
    struct cm_graph *graph;
    struct cm_builder build; /* inside */
    cm_value go;             /* inside; Loop only */
    cm_value number;         /* inside; Loop only: of the forward iteration */
    cm_value from_end;       /* inside; Loop only: the same, counted from the last */
    CM_ARRAY(cm_value) inputs, outputs;
    CM_ARRAY(struct cm_backward_part) parts;
    CM_ARRAY(int64_t) axes, directions; /* of the scan inputs */
};

/* trips 0: a Scan. */
void cm_backward_init(struct cm_backward *b, struct cm_builder *outer, cm_value trips);

/* First what is carried, then the gradients that come in parts, then what is read. Each gives the
 * value inside. Directions are those of the forward node. */
cm_value cm_backward_state(struct cm_backward *b, cm_value initial, const struct cm_type *type);
void cm_backward_part(struct cm_backward *b, const struct cm_backward_part *part);
cm_value cm_backward_slice(struct cm_backward *b, cm_value whole, int64_t axis, int64_t direction);
/* The item that belongs to the iteration; Loop only. */
cm_value cm_backward_item(struct cm_backward *b, cm_value sequence);

/* What an iteration makes of each state, then of each part, in their order. */
void cm_backward_return(struct cm_backward *b, cm_value value);
/* Emits the node; results has one member for each state and part. */
enum cm_status cm_backward_emit(struct cm_backward *b, cm_value *results) CM_MUST_CHECK;

/* Removes nodes whose results nobody reads. */
void cm_prune_body(struct cm_graph *graph);

#endif
