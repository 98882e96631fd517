/* Gradient nodes become the nodes that compute them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_AUTODIFF_GRADIENT_NODES_H
#define CM_AUTODIFF_GRADIENT_NODES_H

#include "graph/op.h"

/* Replaces every Gradient node of graph, and of the bodies in it, in order: one may differentiate
 * what another gave. A derivative by what y does not depend on is zero. */
enum cm_status cm_gradient_expand(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;

#endif
