/* What LSTM, GRU and RNN share: operand layout, directions, sequence lengths, activations. Each is
 * defined by one step: as nodes, around which recurrent.c builds a Scan, and as a function of
 * doubles, which the kernels of recurrent_run.c call. The gradient is defined the same way by one
 * step back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_RNN_RECURRENT_H
#define CM_OPS_RNN_RECURRENT_H

#include "graph/op.h"
#include "graph/recurrent_form.h"

enum { CM_MAX_STATES = 2, CM_MAX_GATES = 4, CM_MAX_KEPT = 5 };
enum { CM_MOST_HIDDEN = 1 << 30 }; /* so that sizes of gates can be added up */

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
    cm_value kept[CM_MAX_KEPT];   /* and what its gradient needs: the parts of `reserve` */
};

/* One sample at one step, in doubles: what the kernels compute with. */
struct cm_rnn_row {
    const struct cm_node *node;
    const struct cm_recurrent_form *form;
    int direction;
    int64_t hidden;
    const double *recurrence;      /* (gates * hidden, hidden) */
    const double *recurrence_bias; /* (gates * hidden), NULL when there is none or it is in input */
    const double *peepholes;       /* (3 * hidden) or NULL */
    const double *input;           /* (gates * hidden): input times its weights, plus biases */
    double *product;               /* (gates * hidden): scratch */
    double *state[CM_MAX_STATES];  /* (hidden) each: becomes the next */
    double *kept;                  /* (kept * hidden): what goes into `reserve` */
};

/* The same on the way back. */
struct cm_rnn_row_back {
    const struct cm_recurrent_form *form;
    int direction;
    int64_t hidden;
    const double *kept;                  /* of the step */
    const double *before[CM_MAX_STATES]; /* the states it began with */
    const double *y;                     /* the state it ended with */
    double *d_state[CM_MAX_STATES]; /* gradients of the states it ended with; becomes what reaches
                                       those it began with, but for the product with R */
    double *d_input;                /* (gates * hidden): of what came from the input .. */
    double *d_product;              /* .. and from the product with R */
};

/* One step back while it is being built. */
struct cm_rnn_step_back {
    struct cm_builder build; /* inside the Scan's body */
    const struct cm_body *call;
    int direction;
    int64_t hidden;
    cm_value kept; /* (batch, kept * hidden) */
    cm_value before[CM_MAX_STATES], y, d_state[CM_MAX_STATES];
    cm_value d_input, d_product; /* what the step sets, with d_state */
};

/* An operator: how many gates and states, which activations, and one step of it. */
struct cm_cell {
    int n_gates, n_states, n_activations;
    enum cm_activation activations[CM_CELL_ACTIVATIONS]; /* by default */
    bool keeps_recurrence_bias;                          /* it must not be added to the input's */
    bool has_codes; /* W and R are transposed codes; their scales and zero points are operands 8 to
                       11, for all of a direction or for each column of it */
    enum cm_status (*step)(struct cm_rnn_step *step);
    void (*turn)(struct cm_rnn_row *row);
    /* The gradient of its common form: with the activations above, nothing clipped. */
    int n_kept;           /* parts of `hidden` elements in `reserve`, 0: Y is enough */
    const char *training; /* the operator that has the output `reserve`, NULL: none is needed */
    const char *gradient;
    void (*step_back)(struct cm_rnn_step_back *step);
    void (*turn_back)(struct cm_rnn_row_back *row);
};

/* The rules of operators whose .arg is a struct cm_cell. */
enum cm_status cm_recurrent_infer(struct cm_infer *in);
cm_require_fn cm_recurrent_require;
enum cm_status cm_recurrent_body(struct cm_body *b);
enum cm_status cm_recurrent_prepare(struct cm_call *call);
enum cm_status cm_recurrent_run(struct cm_call *call);
bool cm_recurrent_grad_fits(const struct cm_node *node);
enum cm_status cm_recurrent_grad(struct cm_grad *g);
/* The same of the operators that compute gradients. */
enum cm_status cm_recurrent_grad_infer(struct cm_infer *in);
enum cm_status cm_recurrent_grad_body(struct cm_body *b);
enum cm_status cm_recurrent_grad_prepare(struct cm_call *call);
enum cm_status cm_recurrent_grad_run(struct cm_call *call);

/* The size of the hidden state as far as a node and the type of its R tell. */
struct cm_dim cm_recurrent_hidden(const struct cm_node *node, const struct cm_type *r);
/* Direction d of an operand whose axis counts directions, without that axis; 0 of 0. */
cm_value cm_body_pick(struct cm_body *b, cm_value operand, int64_t axis, int d);
cm_value cm_body_transpose(struct cm_body *b, cm_value x, size_t rank, const int64_t *order);
/* A Scan over the steps: states, then what is scanned, at most CM_SCANS tensors; it gives the last
 * states and results by step. */
enum { CM_SCANS = 3 };
void cm_body_scan(struct cm_body *b, struct cm_graph *graph, bool reverse, size_t n_states,
                  const cm_value *states, size_t n_scans, const cm_value *scans, cm_value *last,
                  size_t n_results, cm_value *results);
/* The parts, one for each direction, along a new axis. */
cm_value cm_body_join(struct cm_body *b, const cm_value *parts, int n, int64_t axis);
/* Zeros as the state of one direction: (batch of x, hidden), x being (seq, batch, input). */
cm_value cm_body_zero_state(struct cm_body *b, cm_value x, int64_t hidden);

/* Inside a step: activation number `which` of the direction, and the clipping of what goes into
 * one. */
cm_value cm_step_activate(struct cm_rnn_step *step, int which, cm_value x);
cm_value cm_step_clip(struct cm_rnn_step *step, cm_value x);
/* A state times the recurrence weights; with codes as weights it becomes codes too, as
 * DynamicQuantizeLinear makes them. */
cm_value cm_step_recur(struct cm_rnn_step *step, cm_value state);
/* Columns [part * hidden, (part + 1) * hidden) of a value whose last axis holds parts. */
cm_value cm_build_part(struct cm_builder *build, cm_value x, int64_t hidden, int part);
cm_value cm_step_part(struct cm_rnn_step *step, cm_value x, int part);

/* Of a row: activation `which`, and the same of what is clipped first. */
double cm_row_activation(const struct cm_rnn_row *row, int which, double x);
double cm_row_activate(const struct cm_rnn_row *row, int which, double x);
/* A state times the recurrence weights of a gate, into its part of product. */
void cm_row_recur(const struct cm_rnn_row *row, int gate, const double *state);

#endif
