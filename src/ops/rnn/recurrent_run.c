/* The reference kernels of recurrent operators and their gradients: one sample at a time, in
 * doubles. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/rnn/operands.h"
#include "ops/rnn/recurrent.h"
#include "tensor/line.h"

#include <math.h>

/* ---- one row ---- */

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

double cm_row_activation(const struct cm_rnn_row *row, int which, double x)
{
    const struct cm_recurrent_activation *a = &row->form->activations[row->direction][which];
    const double alpha = (double)a->alpha, beta = (double)a->beta;
    switch (a->kind) {
    case CM_ACT_RELU:
        return x < 0 ? 0 : x;
    case CM_ACT_TANH:
        return tanh(x);
    case CM_ACT_SIGMOID:
        return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    case CM_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case CM_ACT_SOFTPLUS:
        return softplus(x);
    case CM_ACT_LEAKY_RELU:
        return x < 0 ? alpha * x : x;
    case CM_ACT_THRESHOLDED_RELU:
        return x <= alpha ? 0 : x;
    case CM_ACT_ELU:
        return x < 0 ? alpha * expm1(x) : x;
    case CM_ACT_HARD_SIGMOID:
        x = alpha * x + beta;
        return x < 0 ? 0 : x > 1 ? 1 : x;
    case CM_ACT_AFFINE:
        return alpha * x + beta;
    case CM_ACT_SCALED_TANH:
        return alpha * tanh(beta * x);
    case CM_ACTIVATIONS:
        break;
    }
    return x;
}

double cm_row_activate(const struct cm_rnn_row *row, int which, double x)
{
    const double limit = (double)row->form->clip;
    if (row->form->has_clip) {
        x = x < -limit ? -limit : x;
        x = x > limit ? limit : x;
    }
    return cm_row_activation(row, which, x);
}

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

void cm_row_recur(const struct cm_rnn_row *row, int gate, const double *state)
{
    const int64_t n = row->hidden;
    for (int64_t j = gate * n; j < (gate + 1) * n; j++)
        row->product[j] = dot(n, row->recurrence + j * n, state);
}

/* ---- the call ---- */

struct sizes {
    struct cm_recurrent_form form;
    int64_t steps, batch, input, hidden, rows; /* rows of W and R: gates * hidden */
};

/* Where scratch is, one array behind the other; without memory it only counts. */
struct arrays {
    double *at;
    int64_t count;
    bool fits;
};

static double *array(struct arrays *all, int64_t a, int64_t b)
{
    double *here = all->at;
    int64_t count;
    all->fits = all->fits && cm_dim_mul(a, b, &count) && cm_dim_add(all->count, count, &all->count);
    if (here)
        all->at += a * b;
    return here;
}

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static struct cm_tensor *result(const struct cm_call *call, int o)
{
    return o < call->n_out ? call->out[o] : NULL;
}

static void load(const struct cm_tensor *from, int64_t at, int64_t count, double *to)
{
    cm_line_load(cm_line_at(from, at), 1, count, CM_DOUBLE, to);
}

static void save(const struct cm_tensor *to, int64_t at, int64_t count, const double *from)
{
    if (to)
        cm_line_save(cm_line_at(to, at), 1, count, CM_DOUBLE, from);
}

static void clear(double *at, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        at[i] = 0;
}

/* Row `row` of what a state has: (directions, batch, hidden), batch first with layout 1. */
static int64_t state_at(const struct sizes *s, int d, int64_t row)
{
    const int64_t dirs = s->form.directions;
    return (s->form.batch_first ? row * dirs + d : d * s->batch + row) * s->hidden;
}

/* The same of Y, (seq, directions, batch, hidden) or (batch, seq, directions, hidden), and X. */
static int64_t y_at(const struct sizes *s, int d, int64_t t, int64_t row)
{
    const int64_t dirs = s->form.directions;
    return (s->form.batch_first ? (row * s->steps + t) * dirs + d
                                : (t * dirs + d) * s->batch + row) *
           s->hidden;
}

static int64_t x_at(const struct sizes *s, int64_t t, int64_t row)
{
    return (s->form.batch_first ? row * s->steps + t : t * s->batch + row) * s->input;
}

/* (directions, seq, batch, parts) */
static int64_t reserve_at(const struct sizes *s, int d, int64_t t, int64_t row, int64_t parts)
{
    return ((d * s->steps + t) * s->batch + row) * parts;
}

static struct sizes *plan(struct cm_call *call, const struct cm_tensor *x,
                          const struct cm_tensor *r)
{
    const struct cm_cell *cell = call->node->op->arg;
    struct sizes *s = cm_call_state(call, sizeof *s);
    cm_recurrent_form(call->node, cell->n_activations, cell->activations, &s->form);
    s->steps = x->shape.dims[s->form.batch_first];
    s->batch = x->shape.dims[!s->form.batch_first];
    s->input = x->shape.dims[2];
    s->hidden = r->shape.dims[2];
    s->rows = cell->n_gates * s->hidden;
    return s;
}

static enum cm_status ask_scratch(struct cm_call *call, const struct arrays *all)
{
    size_t bytes;
    if (!all->fits || !cm_dtype_bytes(CM_DOUBLE, all->count, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* ---- forward ---- */

struct forward {
    double *w, *r, *bias, *of_state, *p, *x, *input, *product, *kept, *old[CM_MAX_STATES];
    double *state[CM_MAX_STATES]; /* (batch, hidden) */
};

static struct forward place_forward(const struct sizes *s, const struct cm_cell *cell,
                                    struct arrays *all)
{
    struct forward f;
    f.w = array(all, s->rows, s->input);
    f.r = array(all, s->rows, s->hidden);
    f.bias = array(all, s->rows, 1);
    f.of_state = array(all, s->rows, 1);
    f.p = array(all, 3, s->hidden);
    f.x = array(all, s->input, 1);
    f.input = array(all, s->rows, 1);
    f.product = array(all, s->rows, 1);
    f.kept = array(all, cell->n_kept, s->hidden);
    for (int i = 0; i < CM_MAX_STATES; i++) {
        f.old[i] = array(all, s->hidden, 1);
        f.state[i] = array(all, s->batch, s->hidden);
    }
    return f;
}

enum cm_status cm_recurrent_prepare(struct cm_call *call)
{
    const struct sizes *s = plan(call, call->in[IN_X], call->in[IN_R]);
    struct arrays all = {.fits = true};
    place_forward(s, call->node->op->arg, &all);
    return ask_scratch(call, &all);
}

static void load_direction(struct cm_call *call, const struct sizes *s, int d, struct forward *f)
{
    const struct cm_cell *cell = call->node->op->arg;
    const struct cm_tensor *b = operand(call, IN_B), *p = operand(call, IN_P);
    load(call->in[IN_W], d * s->rows * s->input, s->rows * s->input, f->w);
    load(call->in[IN_R], d * s->rows * s->hidden, s->rows * s->hidden, f->r);
    clear(f->bias, s->rows);
    clear(f->of_state, s->rows);
    if (b) {
        load(b, d * 2 * s->rows, s->rows, f->bias);
        load(b, (d * 2 + 1) * s->rows, s->rows, f->of_state);
    }
    for (int64_t j = 0; !cell->keeps_recurrence_bias && j < s->rows; j++)
        f->bias[j] += f->of_state[j];
    if (p)
        load(p, d * 3 * s->hidden, 3 * s->hidden, f->p);
    for (int i = 0; i < cell->n_states; i++)
        for (int64_t row = 0; row < s->batch; row++) {
            const struct cm_tensor *given = operand(call, IN_H + i);
            double *to = f->state[i] + row * s->hidden;
            clear(to, s->hidden);
            if (given)
                load(given, state_at(s, d, row), s->hidden, to);
        }
}

/* Step t of one sample. Past the end of its sequence it keeps its states and gives zeros. */
static void turn_row(struct cm_call *call, const struct sizes *s, int d, int64_t t, int64_t row,
                     const struct forward *f)
{
    const struct cm_cell *cell = call->node->op->arg;
    const struct cm_tensor *lens = operand(call, IN_LENS);
    const size_t bytes = (size_t)s->hidden * sizeof(double);
    struct cm_rnn_row turn = {.node = call->node,
                              .form = &s->form,
                              .direction = d,
                              .hidden = s->hidden,
                              .recurrence = f->r,
                              .recurrence_bias = cell->keeps_recurrence_bias ? f->of_state : NULL,
                              .peepholes = operand(call, IN_P) ? f->p : NULL,
                              .input = f->input,
                              .product = f->product,
                              .kept = f->kept};
    load(call->in[IN_X], x_at(s, t, row), s->input, f->x);
    for (int64_t j = 0; j < s->rows; j++)
        f->input[j] = f->bias[j] + dot(s->input, f->w + j * s->input, f->x);
    for (int i = 0; i < cell->n_states; i++) {
        turn.state[i] = f->state[i] + row * s->hidden;
        memcpy(f->old[i], turn.state[i], bytes);
    }
    cell->turn(&turn);
    save(result(call, cell->n_states + 1),
         reserve_at(s, d, t, row, (int64_t)cell->n_kept * s->hidden),
         (int64_t)cell->n_kept * s->hidden, f->kept);
    if (lens && t >= cm_tensor_int(lens, row)) {
        for (int i = 0; i < cell->n_states; i++)
            memcpy(turn.state[i], f->old[i], bytes);
        clear(f->product, s->hidden);
        save(result(call, 0), y_at(s, d, t, row), s->hidden, f->product);
    } else {
        save(result(call, 0), y_at(s, d, t, row), s->hidden, turn.state[0]);
    }
}

enum cm_status cm_recurrent_run(struct cm_call *call)
{
    const struct cm_cell *cell = call->node->op->arg;
    const struct sizes *s = call->state;
    const struct cm_tensor *lens = operand(call, IN_LENS);
    struct arrays all = {.at = call->scratch, .fits = true};
    struct forward f = place_forward(s, cell, &all);
    for (int64_t row = 0; lens && row < s->batch; row++)
        CM_TRY(cm_recurrent_check_length(cm_tensor_int(lens, row), s->steps, call->err));
    for (int d = 0; d < s->form.directions; d++) {
        load_direction(call, s, d, &f);
        for (int64_t step = 0; step < s->steps; step++)
            for (int64_t row = 0; row < s->batch; row++)
                turn_row(call, s, d, s->form.reverse[d] ? s->steps - 1 - step : step, row, &f);
        for (int i = 0; i < cell->n_states; i++)
            for (int64_t row = 0; row < s->batch; row++)
                save(result(call, i + 1), state_at(s, d, row), s->hidden,
                     f.state[i] + row * s->hidden);
    }
    return CM_OK;
}

/* ---- backward ---- */

struct backward {
    double *w, *r, *dw, *dr, *d_bias, *d_of_state, *x, *dy, *y, *kept;
    double *before[CM_MAX_STATES], *d_input, *d_product;
    double *d_state[CM_MAX_STATES]; /* (batch, hidden) */
    double *dxs;                    /* (seq, batch, input): the sum over both directions */
};

static struct backward place_backward(const struct sizes *s, const struct cm_cell *cell,
                                      struct arrays *all)
{
    struct backward b;
    b.w = array(all, s->rows, s->input);
    b.r = array(all, s->rows, s->hidden);
    b.dw = array(all, s->rows, s->input);
    b.dr = array(all, s->rows, s->hidden);
    b.d_bias = array(all, s->rows, 1);
    b.d_of_state = array(all, s->rows, 1);
    b.x = array(all, s->input, 1);
    b.dy = array(all, s->hidden, 1);
    b.y = array(all, s->hidden, 1);
    b.kept = array(all, cell->n_kept, s->hidden);
    b.d_input = array(all, s->rows, 1);
    b.d_product = array(all, s->rows, 1);
    for (int i = 0; i < CM_MAX_STATES; i++) {
        b.before[i] = array(all, s->hidden, 1);
        b.d_state[i] = array(all, s->batch, s->hidden);
    }
    int64_t samples = 0;
    all->fits = all->fits && cm_dim_mul(s->steps, s->batch, &samples);
    b.dxs = array(all, samples, s->input);
    return b;
}

enum cm_status cm_recurrent_grad_prepare(struct cm_call *call)
{
    const struct sizes *s = plan(call, call->in[CM_BACK_X], call->in[CM_BACK_R]);
    struct arrays all = {.fits = true};
    place_backward(s, call->node->op->arg, &all);
    return ask_scratch(call, &all);
}

static void add_scaled(int64_t n, double factor, const double *x, double *sum)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += factor * x[i];
}

/* The states that step t of a sample began with: H is in Y, C the last part of the reserve. */
static void load_before(struct cm_call *call, const struct sizes *s, int d, int64_t t, int64_t row,
                        const struct backward *b)
{
    const struct cm_cell *cell = call->node->op->arg;
    const int64_t last = s->form.reverse[d] ? t + 1 : t - 1;
    const bool is_first = last < 0 || last == s->steps;
    for (int i = 0; i < cell->n_states; i++) {
        const struct cm_tensor *given = operand(call, CM_BACK_STATE(i));
        clear(b->before[i], s->hidden);
        if (is_first && given)
            load(given, state_at(s, d, row), s->hidden, b->before[i]);
        else if (!is_first && i == 0)
            load(call->in[CM_BACK_Y], y_at(s, d, last, row), s->hidden, b->before[i]);
        else if (!is_first)
            load(call->in[CM_BACK_RESERVE],
                 reserve_at(s, d, last, row, (int64_t)cell->n_kept * s->hidden) +
                     (cell->n_kept - 1) * s->hidden,
                 s->hidden, b->before[i]);
    }
}

static void turn_row_back(struct cm_call *call, const struct sizes *s, int d, int64_t t,
                          int64_t row, const struct backward *b)
{
    const struct cm_cell *cell = call->node->op->arg;
    const struct cm_tensor *dy = operand(call, CM_BACK_DY);
    struct cm_rnn_row_back turn = {.form = &s->form,
                                   .direction = d,
                                   .hidden = s->hidden,
                                   .kept = b->kept,
                                   .y = b->y,
                                   .d_input = b->d_input,
                                   .d_product = b->d_product};
    for (int i = 0; i < cell->n_states; i++) {
        turn.before[i] = b->before[i];
        turn.d_state[i] = b->d_state[i] + row * s->hidden;
    }
    load_before(call, s, d, t, row, b);
    load(call->in[CM_BACK_Y], y_at(s, d, t, row), s->hidden, b->y);
    if (cell->n_kept)
        load(call->in[CM_BACK_RESERVE], reserve_at(s, d, t, row, (int64_t)cell->n_kept * s->hidden),
             (int64_t)cell->n_kept * s->hidden, b->kept);
    if (dy) {
        load(dy, y_at(s, d, t, row), s->hidden, b->dy);
        add_scaled(s->hidden, 1, b->dy, turn.d_state[0]);
    }
    cell->turn_back(&turn);
    load(call->in[CM_BACK_X], x_at(s, t, row), s->input, b->x);
    for (int64_t j = 0; j < s->rows; j++) {
        add_scaled(s->hidden, b->d_product[j], b->r + j * s->hidden, turn.d_state[0]);
        add_scaled(s->hidden, b->d_product[j], b->before[0], b->dr + j * s->hidden);
        add_scaled(s->input, b->d_input[j], b->x, b->dw + j * s->input);
        add_scaled(s->input, b->d_input[j], b->w + j * s->input, b->dxs + x_at(s, t, row));
        b->d_bias[j] += b->d_input[j];
        b->d_of_state[j] += b->d_product[j];
    }
}

static void begin_back(struct cm_call *call, const struct sizes *s, int d, const struct backward *b)
{
    const struct cm_cell *cell = call->node->op->arg;
    load(call->in[CM_BACK_W], d * s->rows * s->input, s->rows * s->input, b->w);
    load(call->in[CM_BACK_R], d * s->rows * s->hidden, s->rows * s->hidden, b->r);
    clear(b->dw, s->rows * s->input);
    clear(b->dr, s->rows * s->hidden);
    clear(b->d_bias, s->rows);
    clear(b->d_of_state, s->rows);
    for (int i = 0; i < cell->n_states; i++) {
        const struct cm_tensor *given = operand(call, CM_BACK_D_STATE(i));
        clear(b->d_state[i], s->batch * s->hidden);
        if (given)
            load(given, state_at(s, d, 0), s->batch * s->hidden, b->d_state[i]);
    }
}

enum cm_status cm_recurrent_grad_run(struct cm_call *call)
{
    const struct cm_cell *cell = call->node->op->arg;
    const struct sizes *s = call->state;
    struct arrays all = {.at = call->scratch, .fits = true};
    const struct backward b = place_backward(s, cell, &all);
    clear(b.dxs, s->steps * s->batch * s->input);
    for (int d = 0; d < s->form.directions; d++) {
        begin_back(call, s, d, &b);
        for (int64_t step = 0; step < s->steps; step++)
            for (int64_t row = 0; row < s->batch; row++)
                turn_row_back(call, s, d, s->form.reverse[d] ? step : s->steps - 1 - step, row, &b);
        save(result(call, CM_BACK_DW), d * s->rows * s->input, s->rows * s->input, b.dw);
        save(result(call, CM_BACK_DR), d * s->rows * s->hidden, s->rows * s->hidden, b.dr);
        save(result(call, CM_BACK_DB), d * 2 * s->rows, s->rows, b.d_bias);
        save(result(call, CM_BACK_DB), (d * 2 + 1) * s->rows, s->rows, b.d_of_state);
        for (int i = 0; i < cell->n_states; i++)
            save(result(call, CM_BACK_DH + i), state_at(s, d, 0), s->batch * s->hidden,
                 b.d_state[i]);
    }
    save(result(call, CM_BACK_DX), 0, s->steps * s->batch * s->input, b.dxs);
    return CM_OK;
}
