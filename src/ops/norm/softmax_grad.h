/* Softmax, LogSoftmax and Hardmax, and the gradients of the first two: what they share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_NORM_SOFTMAX_GRAD_H
#define CM_OPS_NORM_SOFTMAX_GRAD_H

#include "ops/common/along_axis.h"

cm_grad_fn cm_softmax_grad; /* emits the operator's name with Grad at its end */

/* The result is like input i; a scalar is one lane under the default axis. */
enum cm_status cm_softmax_infer(struct cm_infer *in, int i) CM_MUST_CHECK;
/* The state is a struct cm_lanes over input 0; there are so many lanes of doubles in scratch. */
enum cm_status cm_softmax_prepare(struct cm_call *call, size_t buffers) CM_MUST_CHECK;

#endif
