/* From a graph of core operators to a program for MLIR (mlir/mlir_program.h), by the templates of
 * data/mlir/. Needs no library of MLIR. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_LOWERING_H
#define CM_MLIR_LOWERING_H

#include "graph/graph.h"
#include "mlir/mlir_program.h"

struct cm_obstacles;

struct cm_mlir_lower_options {
    bool is_pure;                   /* no kernels in C: generated code only */
    bool keeps_weights;             /* initializers of the file lie in the weights, however small */
    bool is_step;                   /* run again and again: every run would draw the same numbers */
    struct cm_obstacles *obstacles; /* receives every node that cannot be lowered; may be NULL */
};

/* Has the operator, which need not be core, a template that says @whole? */
bool cm_mlir_takes_whole(struct cm_str domain, struct cm_str name);

/* The program lives in arena; weights are those of the graph's module. All nodes that cannot be
 * lowered are found before it fails. */
enum cm_status cm_mlir_lower(struct cm_graph *graph, const struct cm_mlir_lower_options *options,
                             struct cm_arena *arena, struct cm_mlir_program *out,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
