/* Walks a graph backwards, asking each operator for its gradient. Knows no operator. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_BACKWARD_H
#define CM_AUTODIFF_BACKWARD_H

#include "graph/op.h"

/* What is differentiated, by what, and where the nodes go. */
struct cm_autodiff {
    struct cm_graph *graph;     /* nodes are emitted here .. */
    struct cm_node *before;     /* .. before this one; NULL: at the end */
    const cm_value *ys, *seeds; /* gradients of the sum of ys weighted by seeds; seed 0 is ones */
    size_t n_ys;
    const cm_value
        *xs; /* by these, taken as independent: nothing flows through what computes them */
    size_t n_xs;
    const cm_value *cuts; /* further values taken as independent */
    size_t n_cuts;
    bool local; /* and so are all values of graphs around this one */
};

/* grads has n_xs members; 0 where no path leads. Values may be defined in graph or in graphs around
 * it. A forward node may be replaced by its function body, or by one with more outputs; values that
 * others hold keep their uses, not their numbers. */
enum cm_status cm_autodiff_emit(const struct cm_autodiff *what, cm_value *grads,
                                struct cm_error *err) CM_MUST_CHECK;

/* The nodes between xs and y: those that y is computed by and that depend on one of xs, makers
 * first. */
size_t cm_autodiff_path(struct cm_module *module, cm_value y, const cm_value *xs, size_t n_xs,
                        struct cm_node ***out);

/* The usual case: one y, nodes at the end of its graph. */
enum cm_status cm_autodiff(struct cm_graph *graph, cm_value y, cm_value seed, const cm_value *xs,
                           size_t n_xs, cm_value *grads, struct cm_error *err) CM_MUST_CHECK;

#endif
