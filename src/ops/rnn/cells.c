/* LSTM, GRU and RNN: one step of each. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn/recurrent.h"

/* Gate order i, o, f, c; peepholes i, o, f. With f, g, h the three activations and * elementwise:
 *   i = f(Xi + H Ri + Pi * C)    f = f(Xf + H Rf + Pf * C)    c = g(Xc + H Rc)
 *   C' = f * C + i * c           o = f(Xo + H Ro + Po * C')   H' = o * h(C') */
static enum cm_status lstm_step(struct cm_rnn_step *s)
{
    const struct cm_node *node = s->call->node;
    const cm_value h = s->state[0], c = s->state[1];
    const cm_value all = cm_emit(s, "Add", s->input, cm_step_recur(s, h));
    cm_value i = cm_step_part(s, all, 0), o = cm_step_part(s, all, 1);
    cm_value f = cm_step_part(s, all, 2), candidate = cm_step_part(s, all, 3);
    if (s->peepholes) {
        i = cm_emit(s, "Add", i, cm_emit(s, "Mul", cm_step_part(s, s->peepholes, 0), c));
        f = cm_emit(s, "Add", f, cm_emit(s, "Mul", cm_step_part(s, s->peepholes, 2), c));
    }
    i = cm_step_activate(s, 0, cm_step_clip(s, i));
    if (cm_node_int(node, "input_forget")) /* ONNX says "coupled" only; so does ONNX Runtime it */
        f = cm_emit(s, "Sub", cm_emit_scalar_like(s, i, 1.0), i);
    else
        f = cm_step_activate(s, 0, cm_step_clip(s, f));
    candidate = cm_step_activate(s, 1, cm_step_clip(s, candidate));
    const cm_value next_c =
        cm_emit(s, "Add", cm_emit(s, "Mul", f, c), cm_emit(s, "Mul", i, candidate));
    if (s->peepholes)
        o = cm_emit(s, "Add", o, cm_emit(s, "Mul", cm_step_part(s, s->peepholes, 1), next_c));
    o = cm_step_activate(s, 0, cm_step_clip(s, o));
    s->next[0] = cm_emit(s, "Mul", o, cm_step_activate(s, 2, next_c));
    s->next[1] = next_c;
    return s->build.status;
}

static const struct cm_cell lstm = {.n_gates = 4,
                                    .n_states = 2,
                                    .n_activations = 3,
                                    .activations = {"Sigmoid", "Tanh", "Tanh"},
                                    .step = lstm_step};

CM_OP(LSTM, .infer = cm_recurrent_infer, .body = cm_recurrent_body, .arg = &lstm,
      .weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3) | CM_OPERAND(7));

static const struct cm_cell coded_lstm = {.n_gates = 4,
                                          .n_states = 2,
                                          .n_activations = 3,
                                          .activations = {"Sigmoid", "Tanh", "Tanh"},
                                          .has_codes = true,
                                          .step = lstm_step};

CM_OP_IN(microsoft, "com.microsoft", DynamicQuantizeLSTM, .infer = cm_recurrent_infer,
         .body = cm_recurrent_body, .arg = &coded_lstm);

/* Gate order z, r, h. z = f(Xz + H Rz), r = f(Xr + H Rr), the candidate h = g(Xh + (r * H) Rh + b),
 * or with linear_before_reset g(Xh + r * (H Rh + b)); H' = (1 - z) * h + z * H. */
static enum cm_status gru_step(struct cm_rnn_step *s)
{
    const cm_value h = s->state[0];
    const cm_value weights_h = cm_step_part(s, s->recurrence, 2);
    const cm_value bias_h = s->recurrence_bias ? cm_step_part(s, s->recurrence_bias, 2) : 0;
    cm_value gates = cm_emit(s, "MatMul", h, s->recurrence);
    if (s->recurrence_bias)
        gates = cm_emit(s, "Add", gates, s->recurrence_bias);
    const cm_value z =
        cm_step_activate(s, 0,
                         cm_step_clip(s, cm_emit(s, "Add", cm_step_part(s, s->input, 0),
                                                 cm_step_part(s, gates, 0))));
    const cm_value r =
        cm_step_activate(s, 0,
                         cm_step_clip(s, cm_emit(s, "Add", cm_step_part(s, s->input, 1),
                                                 cm_step_part(s, gates, 1))));
    cm_value memory;
    if (cm_node_int(s->call->node, "linear_before_reset")) {
        memory = cm_emit(s, "Mul", r, cm_step_part(s, gates, 2));
    } else {
        memory = cm_emit(s, "MatMul", cm_emit(s, "Mul", r, h), weights_h);
        if (bias_h)
            memory = cm_emit(s, "Add", memory, bias_h);
    }
    const cm_value candidate = cm_step_activate(
        s, 1, cm_step_clip(s, cm_emit(s, "Add", cm_step_part(s, s->input, 2), memory)));
    const cm_value fresh =
        cm_emit(s, "Mul", cm_emit(s, "Sub", cm_emit_scalar_like(s, z, 1.0), z), candidate);
    s->next[0] = cm_emit(s, "Add", fresh, cm_emit(s, "Mul", z, h));
    return s->build.status;
}

static const struct cm_cell gru = {.n_gates = 3,
                                   .n_states = 1,
                                   .n_activations = 2,
                                   .activations = {"Sigmoid", "Tanh"},
                                   .keeps_recurrence_bias = true,
                                   .step = gru_step};

CM_OP(GRU, .infer = cm_recurrent_infer, .body = cm_recurrent_body, .arg = &gru,
      .weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3));

/* H' = f(X + H R) */
static enum cm_status rnn_step(struct cm_rnn_step *s)
{
    const cm_value sum =
        cm_emit(s, "Add", s->input, cm_emit(s, "MatMul", s->state[0], s->recurrence));
    s->next[0] = cm_step_activate(s, 0, cm_step_clip(s, sum));
    return s->build.status;
}

static const struct cm_cell rnn = {
    .n_gates = 1, .n_states = 1, .n_activations = 1, .activations = {"Tanh"}, .step = rnn_step};

CM_OP(RNN, .infer = cm_recurrent_infer, .body = cm_recurrent_body, .arg = &rnn,
      .weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3));
