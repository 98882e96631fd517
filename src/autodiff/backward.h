/* Walks a graph backwards, asking each operator for its gradient. Knows no operator. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_BACKWARD_H
#define CM_AUTODIFF_BACKWARD_H

#include "graph/op.h"

/* Emits, at the end of graph, nodes that compute the derivative of y (the sum of its elements,
 * weighted by seed; seed 0: ones) by each of xs. grads[i] is 0 when no path leads from xs[i] to y.
 * Values outside graph and inside bodies are not differentiated through. A forward node may be
 * replaced by its function body, or by one with more outputs, keeping its results. */
enum cm_status cm_autodiff(struct cm_graph *graph, cm_value y, cm_value seed, const cm_value *xs,
                           size_t n_xs, cm_value *grads, struct cm_error *err) CM_MUST_CHECK;

#endif
