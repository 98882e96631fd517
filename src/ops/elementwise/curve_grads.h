/* Gradients of activations that are one operator each, like the activations themselves. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ELEMENTWISE_CURVE_GRADS_H
#define CM_OPS_ELEMENTWISE_CURVE_GRADS_H

#include "graph/op.h"

cm_grad_fn cm_gelu_grad, cm_swish_grad;

#endif
