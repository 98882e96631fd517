/* The gradient rule of Softmax and LogSoftmax. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_NORM_SOFTMAX_GRAD_H
#define CM_OPS_NORM_SOFTMAX_GRAD_H

#include "graph/op.h"

cm_grad_fn cm_softmax_grad; /* the operator's name with Grad behind it */

#endif
