/* What the attributes of a recurrent operator (LSTM, GRU, RNN) say, for the operators themselves
 * and for backends: directions, activations with their parameters, clipping. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_RECURRENT_FORM_H
#define CM_GRAPH_RECURRENT_FORM_H

#include "graph/graph.h"

enum cm_activation {
    CM_ACT_RELU,
    CM_ACT_TANH,
    CM_ACT_SIGMOID,
    CM_ACT_SOFTSIGN,
    CM_ACT_SOFTPLUS,
    CM_ACT_LEAKY_RELU,
    CM_ACT_THRESHOLDED_RELU,
    CM_ACT_ELU,
    CM_ACT_HARD_SIGMOID,
    CM_ACT_AFFINE,
    CM_ACT_SCALED_TANH,
    CM_ACTIVATIONS,
    CM_ACT_UNKNOWN = CM_ACTIVATIONS /* a name that ONNX does not have */
};

struct cm_recurrent_activation {
    enum cm_activation kind;
    struct cm_str name; /* as given; empty: it was not */
    float alpha, beta;
};

enum { CM_CELL_ACTIVATIONS = 3, CM_DIRECTIONS = 2 };

struct cm_recurrent_form {
    int directions;              /* 1 or 2 */
    bool reverse[CM_DIRECTIONS]; /* goes from the end of the sequence to its beginning */
    bool batch_first;            /* layout 1 */
    bool has_clip;
    float clip; /* what goes into an activation is kept between -clip and clip */
    struct cm_recurrent_activation activations[CM_DIRECTIONS][CM_CELL_ACTIVATIONS];
};

/* usual: the activations of a direction when none are given. */
void cm_recurrent_form(const struct cm_node *node, int n_activations,
                       const enum cm_activation *usual, struct cm_recurrent_form *out);
/* How many of alpha and beta an activation takes. */
int cm_activation_parameters(enum cm_activation kind);

/* Refuses a sequence length outside 0 to most. */
enum cm_status cm_recurrent_check_length(int64_t length, int64_t most,
                                         struct cm_error *err) CM_MUST_CHECK;

#endif
