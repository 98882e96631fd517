/* What LSTM, GRU and RNN share: operand layout, directions, sequence lengths, activations. Each is
 * defined by the body of one step; this builds the Scan around it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RNN_RECURRENT_H
#define CM_OPS_RNN_RECURRENT_H

#include "graph/op.h"

enum { CM_MAX_STATES = 2, CM_MAX_GATES = 4 };

/* One direction of one call, while its step is being built. Values of the outer graph may be read
 * from inside the step. */
struct cm_rnn_step {
    struct cm_builder build; /* inside the Scan's body */
    const struct cm_body *call;
    int direction;  /* 0 or 1: picks activations */
    cm_value input; /* (batch, gates * hidden): input times its weights, plus biases */
    cm_value state[CM_MAX_STATES];
    cm_value recurrence; /* outer: (hidden, gates * hidden), transposed recurrence weights */
    cm_value recurrence_scale, recurrence_zero; /* outer: of weights that are codes; else 0 */
    cm_value recurrence_bias; /* outer: (gates * hidden), 0 when there is none or it is in input
                                 already */
    cm_value peepholes;       /* outer: (3 * hidden) or 0 */
    int64_t hidden;
    cm_value next[CM_MAX_STATES]; /* what the step sets */
};

/* An operator: how many gates and states, which activations, and one step of it. */
struct cm_cell {
    int n_gates, n_states, n_activations;
    const char *activations[3]; /* by default */
    bool keeps_recurrence_bias; /* it must not be added to the input's */
    bool has_codes; /* W and R are transposed codes; their scales and zero points are operands 8 to
                       11, for all of a direction or for each column of it */
    enum cm_status (*step)(struct cm_rnn_step *step);
};

/* The rules of operators whose .arg is a struct cm_cell. */
enum cm_status cm_recurrent_infer(struct cm_infer *in);
enum cm_status cm_recurrent_body(struct cm_body *b);

/* Inside a step: activation number `which` of the direction, and the clipping of what goes into
 * one. */
cm_value cm_step_activate(struct cm_rnn_step *step, int which, cm_value x);
cm_value cm_step_clip(struct cm_rnn_step *step, cm_value x);
/* A state times the recurrence weights; with codes as weights it becomes codes too, as
 * DynamicQuantizeLinear makes them. */
cm_value cm_step_recur(struct cm_rnn_step *step, cm_value state);
/* Columns [part * hidden, (part + 1) * hidden) of a value whose last axis holds parts. */
cm_value cm_step_part(struct cm_rnn_step *step, cm_value x, int part);

#endif
