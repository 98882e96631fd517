/* LSTM, GRU and RNN: one step of each. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/rnn/recurrent.h"

#include <math.h>

/* X, W, R: every row of X meets all of W, and the state all of R. */
static double recurrent_flops(const struct cm_node *node, const struct cm_tensor *const *in,
                              int n_in, const struct cm_tensor *const *out, int n_out)
{
    const struct cm_shape *x = &in[0]->shape;
    (void)node, (void)n_in, (void)out, (void)n_out;
    return x->rank == 3 ? 2.0 * (double)(x->dims[0] * x->dims[1]) *
                              ((double)cm_tensor_count(in[1]) + (double)cm_tensor_count(in[2]))
                        : 0;
}

/* The gradients of operands and of weights are as many each. */
static double recurrent_grad_flops(const struct cm_node *node, const struct cm_tensor *const *in,
                                   int n_in, const struct cm_tensor *const *out, int n_out)
{
    return 2 * recurrent_flops(node, in, n_in, out, n_out);
}

#define RECURRENT(cell)                                                                            \
    .cost.flops = recurrent_flops, .infer = cm_recurrent_infer, .prepare = cm_recurrent_prepare,   \
    .run = cm_recurrent_run, .body = cm_recurrent_body, .require = cm_recurrent_require,           \
    .arg = &(cell)
#define RECURRENT_GRAD(cell)                                                                       \
    .cost.flops = recurrent_grad_flops, .infer = cm_recurrent_grad_infer,                          \
    .prepare = cm_recurrent_grad_prepare, .run = cm_recurrent_grad_run,                            \
    .body = cm_recurrent_grad_body, .arg = &(cell)

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
    s->kept[0] = i;
    s->kept[1] = o;
    s->kept[2] = f;
    s->kept[3] = candidate;
    s->kept[4] = next_c;
    return s->build.status;
}

static void lstm_turn(struct cm_rnn_row *row)
{
    const int64_t n = row->hidden;
    const bool coupled = cm_node_int(row->node, "input_forget") != 0;
    const double *p = row->peepholes;
    for (int gate = 0; gate < 4; gate++)
        cm_row_recur(row, gate, row->state[0]);
    for (int64_t j = 0; j < n; j++) {
        double sum[4], *c = &row->state[1][j];
        for (int gate = 0; gate < 4; gate++)
            sum[gate] = row->input[gate * n + j] + row->product[gate * n + j];
        const double i = cm_row_activate(row, 0, sum[0] + (p ? p[j] * *c : 0));
        const double f =
            coupled ? 1 - i : cm_row_activate(row, 0, sum[2] + (p ? p[2 * n + j] * *c : 0));
        const double candidate = cm_row_activate(row, 1, sum[3]);
        *c = f * *c + i * candidate;
        const double o = cm_row_activate(row, 0, sum[1] + (p ? p[n + j] * *c : 0));
        row->state[0][j] = o * cm_row_activation(row, 2, *c);
        const double kept[] = {i, o, f, candidate, *c};
        for (size_t k = 0; k < CM_COUNT(kept); k++)
            row->kept[(int64_t)k * n + j] = kept[k];
    }
}

static double sigmoid_slope(double y)
{
    return y * (1 - y);
}

static double tanh_slope(double y)
{
    return 1 - y * y;
}

/* Functions of formulas: gradients of a sigmoid and a tanh from what they gave, and part i of what
 * a step kept. */
#define SLOPES                                                                                     \
    "sigmoid(d, y) = d * (y * (1 - y)); tanh(d, y) = d * (1 - y * y);"                             \
    "part(i) = Slice(kept, [hidden * i], [hidden * (i + 1)], [-1]);"

/* Its results: gradients by what came from the input and from the product with R, and by the
 * states; a state without one is 0. */
static void emit_back(struct cm_rnn_step_back *s, const char *text)
{
    cm_value v[4];
    const struct cm_str whole = cm_arena_printf(
        cm_builder_arena(&s->build), "kept, y, before, last, dh, dc: hidden = %lld;" SLOPES "%s",
        (long long)s->hidden, text);
    cm_build_formulas(
        &s->build, s->call->node, cm_str_text(whole),
        (const cm_value[]){s->kept, s->y, s->before[0], s->before[1], s->d_state[0], s->d_state[1]},
        6, v, CM_COUNT(v));
    s->d_input = v[0];
    s->d_product = v[1];
    s->d_state[0] = v[2];
    s->d_state[1] = v[3];
}

/* With T = tanh(C'): dC' += dH' o (1 - T T); the gates get dC' c, dH' T, dC' C, dC' i, each times
 * the slope of its activation; dC = dC' f. */
static void lstm_step_back(struct cm_rnn_step_back *s)
{
    emit_back(s, "i = part(0); o = part(1); f = part(2); c = part(3); t = Tanh(part(4));"
                 "d = dc + tanh(dh * o, t);"
                 "di = sigmoid(d * c, i); do = sigmoid(dh * t, o); df = sigmoid(d * last, f);"
                 "gates = Concat<axis=-1>(di, do, df, tanh(d * i, c));"
                 "n = none; dc = d * f -> gates, gates, n, dc");
}

static void lstm_turn_back(struct cm_rnn_row_back *row)
{
    const int64_t n = row->hidden;
    for (int64_t j = 0; j < n; j++) {
        const double i = row->kept[j], o = row->kept[n + j], f = row->kept[2 * n + j];
        const double candidate = row->kept[3 * n + j], t = tanh(row->kept[4 * n + j]);
        const double dh = row->d_state[0][j];
        const double dc = row->d_state[1][j] + dh * o * tanh_slope(t);
        const double gates[] = {dc * candidate * sigmoid_slope(i), dh * t * sigmoid_slope(o),
                                dc * row->before[1][j] * sigmoid_slope(f),
                                dc * i * tanh_slope(candidate)};
        for (int64_t gate = 0; gate < 4; gate++)
            row->d_input[gate * n + j] = row->d_product[gate * n + j] = gates[gate];
        row->d_state[0][j] = 0;
        row->d_state[1][j] = dc * f;
    }
}

static const struct cm_cell lstm = {
    .n_gates = 4,
    .n_states = 2,
    .n_activations = 3,
    .activations = {CM_ACT_SIGMOID, CM_ACT_TANH, CM_ACT_TANH},
    .step = lstm_step,
    .turn = lstm_turn,
    .n_kept = 5,
    .training = "LSTMTraining",
    .gradient = "ai.cameo::LSTMGrad",
    .step_back = lstm_step_back,
    .turn_back = lstm_turn_back,
};

CM_OP(LSTM, RECURRENT(lstm), .grad = cm_recurrent_grad, .grad_fits = cm_recurrent_grad_fits,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3) | CM_OPERAND(7),
      .layer.gates = 4);
CM_OP_IN(cameo, "ai.cameo", LSTMTraining, RECURRENT(lstm));
CM_OP_IN(cameo, "ai.cameo", LSTMGrad, RECURRENT_GRAD(lstm));

static const struct cm_cell coded_lstm = {.n_gates = 4,
                                          .n_states = 2,
                                          .n_activations = 3,
                                          .activations = {CM_ACT_SIGMOID, CM_ACT_TANH, CM_ACT_TANH},
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
    s->kept[0] = z;
    s->kept[1] = r;
    s->kept[2] = candidate;
    s->kept[3] = cm_step_part(s, gates, 2);
    return s->build.status;
}

/* Of gate `gate` and element j: what the state brings, with its bias. */
static double gru_product(const struct cm_rnn_row *row, int64_t gate, int64_t j)
{
    const int64_t at = gate * row->hidden + j;
    return row->product[at] + (row->recurrence_bias ? row->recurrence_bias[at] : 0);
}

static void gru_turn(struct cm_rnn_row *row)
{
    const int64_t n = row->hidden;
    const bool linear = cm_node_int(row->node, "linear_before_reset") != 0;
    double *h = row->state[0], *z = row->kept, *r = z + n, *candidate = r + n, *memory = z + 3 * n;
    for (int gate = 0; gate < 3; gate++)
        cm_row_recur(row, gate, h);
    for (int64_t j = 0; j < n; j++) {
        z[j] = cm_row_activate(row, 0, row->input[j] + gru_product(row, 0, j));
        r[j] = cm_row_activate(row, 0, row->input[n + j] + gru_product(row, 1, j));
        memory[j] = gru_product(row, 2, j);
        candidate[j] = r[j] * (linear ? memory[j] : h[j]);
    }
    if (!linear)
        cm_row_recur(row, 2, candidate);
    for (int64_t j = 0; j < n; j++) {
        const double reset = linear ? candidate[j] : gru_product(row, 2, j);
        candidate[j] = cm_row_activate(row, 1, row->input[2 * n + j] + reset);
        h[j] = (1 - z[j]) * candidate[j] + z[j] * h[j];
    }
}

/* Linear before reset, with m = H Rh + b: z gets dH' (H - h), the candidate h gets dH' (1 - z), r
 * gets dh m, each times the slope of its activation; m gets dh r, and H itself dH' z. */
static void gru_step_back(struct cm_rnn_step_back *s)
{
    emit_back(s, "z = part(0); r = part(1); h = part(2); m = part(3);"
                 "d = tanh(dh * (1 - z), h); dz = sigmoid(dh * (before - h), z);"
                 "dr = sigmoid(d * m, r); input = Concat<axis=-1>(dz, dr, d);"
                 "product = Concat<axis=-1>(dz, dr, d * r); n = none; dh = dh * z"
                 "-> input, product, dh, n");
}

static void gru_turn_back(struct cm_rnn_row_back *row)
{
    const int64_t n = row->hidden;
    for (int64_t j = 0; j < n; j++) {
        const double z = row->kept[j], r = row->kept[n + j], candidate = row->kept[2 * n + j];
        const double dh = row->d_state[0][j];
        const double d_candidate = dh * (1 - z) * tanh_slope(candidate);
        row->d_input[j] = dh * (row->before[0][j] - candidate) * sigmoid_slope(z);
        row->d_input[n + j] = d_candidate * row->kept[3 * n + j] * sigmoid_slope(r);
        row->d_input[2 * n + j] = d_candidate;
        row->d_product[j] = row->d_input[j];
        row->d_product[n + j] = row->d_input[n + j];
        row->d_product[2 * n + j] = d_candidate * r;
        row->d_state[0][j] = dh * z;
    }
}

static const struct cm_cell gru = {
    .n_gates = 3,
    .n_states = 1,
    .n_activations = 2,
    .activations = {CM_ACT_SIGMOID, CM_ACT_TANH},
    .keeps_recurrence_bias = true,
    .step = gru_step,
    .turn = gru_turn,
    .n_kept = 4,
    .training = "GRUTraining",
    .gradient = "ai.cameo::GRUGrad",
    .step_back = gru_step_back,
    .turn_back = gru_turn_back,
};

CM_OP(GRU, RECURRENT(gru), .grad = cm_recurrent_grad, .grad_fits = cm_recurrent_grad_fits,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3), .layer.gates = 3);
CM_OP_IN(cameo, "ai.cameo", GRUTraining, RECURRENT(gru));
CM_OP_IN(cameo, "ai.cameo", GRUGrad, RECURRENT_GRAD(gru));

/* H' = f(X + H R) */
static enum cm_status rnn_step(struct cm_rnn_step *s)
{
    const cm_value sum =
        cm_emit(s, "Add", s->input, cm_emit(s, "MatMul", s->state[0], s->recurrence));
    s->next[0] = cm_step_activate(s, 0, cm_step_clip(s, sum));
    return s->build.status;
}

static void rnn_turn(struct cm_rnn_row *row)
{
    cm_row_recur(row, 0, row->state[0]);
    for (int64_t j = 0; j < row->hidden; j++)
        row->state[0][j] = cm_row_activate(row, 0, row->input[j] + row->product[j]);
}

static enum cm_activation rnn_activation(const struct cm_node *node, int direction);

/* Of a Tanh or a Relu, from what it gave. */
static void rnn_step_back(struct cm_rnn_step_back *s)
{
    const bool is_tanh = rnn_activation(s->call->node, s->direction) == CM_ACT_TANH;
    emit_back(s, is_tanh ? "d = tanh(dh, y); n = none -> d, d, n, n"
                         : "zero = like(dh, 0); d = Where(Greater(y, zero), dh, zero); n = none"
                           "-> d, d, n, n");
}

static void rnn_turn_back(struct cm_rnn_row_back *row)
{
    const bool is_tanh = row->form->activations[row->direction][0].kind == CM_ACT_TANH;
    for (int64_t j = 0; j < row->hidden; j++) {
        const double y = row->y[j], dy = row->d_state[0][j];
        row->d_input[j] = row->d_product[j] = is_tanh ? dy * tanh_slope(y) : y > 0 ? dy : 0;
        row->d_state[0][j] = 0;
    }
}

static const struct cm_cell rnn = {
    .n_gates = 1,
    .n_states = 1,
    .n_activations = 1,
    .activations = {CM_ACT_TANH},
    .step = rnn_step,
    .turn = rnn_turn,
    .gradient = "ai.cameo::RNNGrad",
    .step_back = rnn_step_back,
    .turn_back = rnn_turn_back,
};

static enum cm_activation rnn_activation(const struct cm_node *node, int direction)
{
    struct cm_recurrent_form form;
    cm_recurrent_form(node, rnn.n_activations, rnn.activations, &form);
    return form.activations[direction][0].kind;
}

CM_OP(RNN, RECURRENT(rnn), .grad = cm_recurrent_grad, .grad_fits = cm_recurrent_grad_fits,
      .layer.weights = CM_OPERAND(1) | CM_OPERAND(2) | CM_OPERAND(3), .layer.gates = 1);
CM_OP_IN(cameo, "ai.cameo", RNNGrad, RECURRENT_GRAD(rnn));
