/* Gradient nodes become the nodes that compute them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_GRADIENT_NODES_H
#define CM_AUTODIFF_GRADIENT_NODES_H

#include "graph/op.h"

bool cm_node_is_gradient(const struct cm_node *node);

/* Emits the gradients of what->ys[0] as cm_autodiff_emit does. Each node that leads to it gets the
 * phase of the forward pass, each new node that of the backward pass. */
struct cm_autodiff;
enum cm_status cm_gradient_emit(const struct cm_autodiff *what, cm_value *grads,
                                struct cm_error *err) CM_MUST_CHECK;

/* Replaces every Gradient node of graph, and of the bodies in it, in order: one may differentiate
 * what another gave. A derivative by what y does not depend on is zero. */
enum cm_status cm_gradient_expand(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;

#endif
