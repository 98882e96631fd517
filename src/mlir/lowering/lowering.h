/* From a graph of core operators to a program for MLIR (mlir/lowering/mlir_program.h), by the
 * templates of data/mlir/. Needs no library of MLIR. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_LOWERING_H
#define CM_MLIR_LOWERING_H

#include "graph/graph.h"
#include "mlir/lowering/mlir_program.h"

struct cm_findings;

struct cm_mlir_entry {
    size_t streams; /* random nodes */
    uint64_t seed;  /* that they have where that of the training is 0; they draw from the sum */
};

/* A node of the model that the graph was expanded from. */
struct cm_mlir_origin {
    struct cm_str place; /* "node 'cost' (SoftmaxCrossEntropyLoss)" */
    struct cm_str op_type;
};

/* The node of this name, or that makes a value of this name; NULL: there is none. */
typedef const struct cm_mlir_origin *cm_mlir_origin_fn(const void *arg, struct cm_str name);

struct cm_mlir_lower_options {
    bool is_pure;       /* no kernels in C: generated code only */
    bool keeps_weights; /* initializers of the file lie in the weights, however small */
    /* Of a training step, whose random numbers go on from run to run in a random state: the entries
     * of the training, the nodes of which come one after the other. */
    const struct cm_mlir_entry *entries;
    size_t n_entries;             /* 0: it is not a training step */
    struct cm_findings *findings; /* receives every node that cannot be lowered; may be NULL */
    /* What a node was expanded from: messages name that, which is what people know; or NULL. */
    cm_mlir_origin_fn *origin;
    const void *origin_arg;
};

/* Has the operator, which need not be core, a template that says @whole? */
bool cm_mlir_takes_whole(struct cm_str domain, struct cm_str name);

/* The program lives in arena; weights are those of the graph's module. All nodes that cannot be
 * lowered are found before it fails. */
enum cm_status cm_mlir_lower(struct cm_graph *graph, const struct cm_mlir_lower_options *options,
                             struct cm_arena *arena, struct cm_mlir_program *out,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
