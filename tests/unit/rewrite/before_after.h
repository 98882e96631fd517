/* A graph before and after a pass: which operators it has, and that both give the same results on
 * the same numbers. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_BEFORE_AFTER_H
#define CM_TESTS_BEFORE_AFTER_H

#include "graph/graph_case.h"
#include "rewrite/pass.h"

/* A model of one graph in text form. Inputs whose names begin with a capital letter become
 * constants of pseudo-random numbers: positive ones for V, of either sign for other letters. */
struct cm_graph *before_after_graph(struct cm_arena *arena, const char *text);

/* "Conv Relu": the operators of a graph in order; those of bodies in parentheses after their node.
 */
const char *before_after_operators(struct cm_arena *arena, const struct cm_graph *graph);

/* Fails the test unless both graphs give outputs of the same names, types and numbers on
 * pseudo-random inputs; tolerance is relative to the largest number of an output, 0 means the same
 * bits. Every node must stand after those that it reads. */
void before_after_same(struct cm_arena *arena, struct cm_graph *before, struct cm_graph *after,
                       double tolerance);

struct before_after {
    cm_pass_fn *pass;
    const char *text;     /* before */
    const char *expected; /* operators after */
    double tolerance;
    struct cm_pass_options options;
};
void before_after_check(struct cm_arena *arena, const struct before_after *c);

#endif
