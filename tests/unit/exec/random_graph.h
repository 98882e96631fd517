/* Random models that are valid by construction: elementwise chains, views, shape arithmetic, parts
 * and joins, nested If, Loop and Scan that read values around them, and results whose size only
 * data decides. The same seed gives the same model. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_RANDOM_GRAPH_H
#define CM_TESTS_RANDOM_GRAPH_H

#include "graph/graph_case.h"

/* A model of inputs x float[A,B], y float[A,B], w float[B], n int64[], where A and B are at
 * least 1. */
struct random_graph {
    char text[1 << 16];
    char outputs[8][16]; /* names of values to be made outputs; one may appear twice */
    size_t n_outputs;
};

void random_graph_make(struct random_graph *graph, uint64_t seed);
/* The model in a new module, with its outputs. */
struct cm_graph *random_graph_import(struct cm_arena *arena, const struct random_graph *sample);

/* Numbers below `below`, in a fixed order for a state that is not 0. */
uint64_t random_below(uint64_t *state, uint64_t below);

#endif
