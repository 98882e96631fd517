/* What a run takes by the shapes alone: operations of products, memory of activations. Nothing is
 * run, no weights are read. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EVALUATE_COSTS_H
#define CM_EVALUATE_COSTS_H

#include "base/array.h"
#include "base/map.h"
#include "onnx/model_file.h"

/* Of all nodes of the graph with this operator. */
struct cm_cost {
    struct cm_str domain, op; /* each ends with a zero byte */
    size_t node_count;
    double flops;
    uint64_t output_bytes;
};

/* The size of an open dimension of inputs that the caller gives. */
struct cm_given_size {
    struct cm_str symbol;
    int64_t size;
};

/* A size that was counted with. */
struct cm_assumed_size {
    struct cm_str symbol; /* "?" for all that have no name */
    int64_t size;
    bool assumed; /* the caller gave no size: 1 is assumed */
};

struct cm_costs {
    double flops;
    uint64_t activation_bytes;
    uint64_t peak_bytes;
    size_t unknown_count;               /* results whose size only a run knows: not counted */
    size_t left_out;                    /* nodes that cannot be typed: not counted */
    bool has_bodies;                    /* each is counted once */
    CM_ARRAY(struct cm_cost) operators; /* in falling order of flops, then bytes */
    CM_ARRAY(struct cm_assumed_size) sizes;
};

/* Rows and their texts live in arena; scratch is free for reuse on return. */
enum cm_status cm_costs_count(struct cm_arena *arena, struct cm_arena *scratch,
                              const struct cm_model_file *file, const struct cm_given_size *sizes,
                              size_t n_sizes, struct cm_costs *out,
                              struct cm_error *err) CM_MUST_CHECK;

#endif
