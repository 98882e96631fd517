/* The gradients of MaxPool, AveragePool and GlobalAveragePool. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_POOL_POOL_GRAD_H
#define CM_OPS_POOL_POOL_GRAD_H

#include "graph/op.h"

/* The rule of all three. */
cm_grad_fn cm_pool_grad;

#endif
