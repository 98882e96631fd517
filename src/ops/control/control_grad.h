/* Gradients of If, Loop, Scan and SequenceMap: the backward body runs the forward body again from
 * saved states and differentiates that. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_CONTROL_GRAD_H
#define CM_OPS_CONTROL_CONTROL_GRAD_H

#include "graph/op.h"

cm_grad_fn cm_if_grad, cm_loop_grad, cm_scan_grad;
/* Of SequenceMap, as a Loop; for bodies whose gradients a map cannot give. */
cm_grad_fn cm_map_loop_grad;

/* The type that gradients of values of this type have; NULL when there are none. That of an
 * optional is that of its content; without content a number stands for it, or an empty sequence. */
const struct cm_type *cm_gradient_type(struct cm_arena *arena, const struct cm_type *type);

/* Fails if a body of the node depends on an outer value for which there are no gradients. */
enum cm_status cm_grad_check_captured(struct cm_grad *g) CM_MUST_CHECK;

#endif
