/* The operands of recurrent operators: where they stand, and whether they fit each other. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RNN_OPERANDS_H
#define CM_OPS_RNN_OPERANDS_H

#include "graph/op.h"

/* X (seq, batch, input), W (directions, gates * hidden, input), R (directions, gates * hidden,
 * hidden), B (directions, 2 * gates * hidden), sequence_lens (batch), initial states (directions,
 * batch, hidden), P (directions, 3 * hidden). With layout 1 batch comes first in X, Y and states.
 */
enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H, IN_C, IN_P };

struct cm_recurrent_sizes {
    int directions, gates;
    struct cm_dim hidden;
    bool batch_first;
};

/* Refuses operands whose known shapes, or lengths, do not fit. */
enum cm_status cm_recurrent_check(struct cm_infer *in,
                                  const struct cm_recurrent_sizes *sizes) CM_MUST_CHECK;

/* In a body: the sequence lengths, 0 when there are none, refused in a run if one is no length of
 * a sequence in X. */
cm_value cm_recurrent_lengths(struct cm_body *b);
/* The initial state of this operand, 0 when it is absent, refused in a run if it does not fit X. */
cm_value cm_recurrent_state(struct cm_body *b, int operand, int directions, int64_t hidden);

#endif
