/* Operands of LinearAttention by name, its update rules, and its function body. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ATTENTION_LINEAR_ATTENTION_H
#define CM_OPS_ATTENTION_LINEAR_ATTENTION_H

#include "graph/op.h"

enum cm_linear_input {
    CM_LINEAR_QUERY,
    CM_LINEAR_KEY,
    CM_LINEAR_VALUE,
    CM_LINEAR_PAST,
    CM_LINEAR_DECAY,
    CM_LINEAR_BETA,
};

/* gated: the state fades by exp(decay). corrected: what is written is beta times what the state
 * does not hold yet. */
struct cm_linear_rule {
    bool gated, corrected;
};
enum cm_status cm_linear_rule(const struct cm_node *node, struct cm_linear_rule *out,
                              struct cm_error *err) CM_MUST_CHECK;

cm_body_fn cm_linear_attention_body;

#endif
