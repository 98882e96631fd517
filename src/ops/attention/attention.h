/* Operands and results of Attention by name, its function body and its gradient. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ATTENTION_ATTENTION_H
#define CM_OPS_ATTENTION_ATTENTION_H

#include "graph/op.h"

enum cm_attention_input {
    CM_ATTENTION_QUERY,
    CM_ATTENTION_KEY,
    CM_ATTENTION_VALUE,
    CM_ATTENTION_MASK,
    CM_ATTENTION_PAST_KEY,
    CM_ATTENTION_PAST_VALUE,
    CM_ATTENTION_NONPAD,
};

enum cm_attention_output {
    CM_ATTENTION_RESULT,
    CM_ATTENTION_PRESENT_KEY,
    CM_ATTENTION_PRESENT_VALUE,
    CM_ATTENTION_SCORES,
};

cm_body_fn cm_attention_body;
/* The gradient as one operator, and for which nodes it is one. */
cm_grad_fn cm_attention_grad;
cm_grad_fits_fn cm_attention_grad_fits;

#endif
