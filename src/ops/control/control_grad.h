/* Gradients of If, Loop and Scan: the backward body runs the forward body again from saved states
 * and differentiates that. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_CONTROL_CONTROL_GRAD_H
#define CM_OPS_CONTROL_CONTROL_GRAD_H

#include "graph/op.h"

enum cm_status cm_if_grad(struct cm_grad *g);
enum cm_status cm_loop_grad(struct cm_grad *g);
enum cm_status cm_scan_grad(struct cm_grad *g);

#endif
