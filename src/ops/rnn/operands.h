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

/* The operands of RNNGrad: those of the forward operator that its gradient needs, what it gave, and
 * the gradients of its outputs; GRUGrad has `reserve` behind them, LSTMGrad the second state too.
 */
enum {
    CM_BACK_X,
    CM_BACK_W,
    CM_BACK_R,
    CM_BACK_Y,
    CM_BACK_H,
    CM_BACK_DY,
    CM_BACK_DY_H,
    CM_BACK_RESERVE,
    CM_BACK_C,
    CM_BACK_DY_C,
    CM_BACK_OPERANDS
};
/* The initial states, and the gradients of the last ones, by number of the state. */
#define CM_BACK_STATE(i)   ((i) == 0 ? CM_BACK_H : CM_BACK_C)
#define CM_BACK_D_STATE(i) ((i) == 0 ? CM_BACK_DY_H : CM_BACK_DY_C)
/* Their results. */
enum { CM_BACK_DX, CM_BACK_DW, CM_BACK_DR, CM_BACK_DB, CM_BACK_DH, CM_BACK_DC, CM_BACK_RESULTS };

struct cm_recurrent_sizes {
    int directions, gates;
    struct cm_dim hidden;
    bool batch_first;
    bool transposed; /* W and R have their rows on the last axis */
};

/* Refuses input i, if it is there, where what is known of its shape does not fit. */
enum cm_status cm_recurrent_check_dims(struct cm_infer *in, int i, const char *name, int rank,
                                       const struct cm_dim *needs) CM_MUST_CHECK;
/* Refuses operands whose known shapes, or lengths, do not fit. */
enum cm_status cm_recurrent_check(struct cm_infer *in,
                                  const struct cm_recurrent_sizes *sizes) CM_MUST_CHECK;

struct cm_require;
/* Refuses weights that do not fit, when it runs. */
void cm_recurrent_require_weights(struct cm_require *r, const struct cm_recurrent_sizes *sizes);

/* In a body: the sequence lengths, 0 when there are none, refused in a run if one is no length of
 * a sequence in X. */
cm_value cm_recurrent_lengths(struct cm_body *b);
/* The initial state of this operand, 0 when it is absent, refused in a run if it does not fit X. */
cm_value cm_recurrent_state(struct cm_body *b, int operand, int directions, int64_t hidden);

#endif
