/* The gates of recurrent operators, a vector of them at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/recurrent/recurrent_gates.h"

#include "base/machine.h"
#include "tensor/vector_math.h"

#include <string.h>

enum { WIDTH = CM_CELL_SLICE };

/* Sigmoid and tanh as in vector_math.h, less what only results below 1e-37 need. e^x for |x| <= 87,
 * NaN stays. */
static CM_ALWAYS_INLINE float gate_exp(enum cm_machine machine, float x)
{
    const float whole = 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
    const float shifted = cm_muladd(machine, x, 1.44269504f, whole), n = shifted - whole;
    const float r = cm_muladd(machine, n, 2.12194440e-4f, cm_muladd(machine, n, -0.693359375f, x));
    const float p = cm_muladd(machine, cm_exp_rest(machine, r), r * r, r) + 1;
    return p * cm_float_of_bits((cm_float_bits(shifted) + 127) << 23); /* its low bits are n */
}

static CM_ALWAYS_INLINE float between(float x, float limit)
{
    const float above = x < -limit ? -limit : x;
    return above > limit ? limit : above;
}

static CM_ALWAYS_INLINE float gate_sigmoid(enum cm_machine machine, float x)
{
    return 1 / (1 + gate_exp(machine, between(-x, 87)));
}

static CM_ALWAYS_INLINE float gate_tanh(enum cm_machine machine, float x)
{
    const float z = x * x, e = gate_exp(machine, between(2 * x, 40));
    float p = -5.70498872745e-3f;
    p = cm_muladd(machine, p, z, 2.06390887954e-2f);
    p = cm_muladd(machine, p, z, -5.37397155531e-2f);
    p = cm_muladd(machine, p, z, 1.33314422036e-1f);
    p = cm_muladd(machine, p, z, -3.33332819422e-1f);
    return fabsf(x) < 0.625f ? cm_muladd(machine, p * z, x, x) : (e - 1) / (e + 1);
}

/* Less than a vector, of the last slice: zeros behind it. Not inlined: there are many places and
 * three builds of each. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static void
load_part(const float *from, int columns, float *to)
{
    for (int j = 0; j < WIDTH; j++)
        to[j] = j < columns ? from[j] : 0;
}

static CM_ALWAYS_INLINE void load(const float *from, int columns, float *to)
{
    if (columns == WIDTH)
        memcpy(to, from, WIDTH * sizeof *to);
    else
        load_part(from, columns, to);
}

static CM_ALWAYS_INLINE void save(const float *from, int columns, float *to)
{
    if (columns == WIDTH)
        memcpy(to, from, WIDTH * sizeof *to);
    else
        memcpy(to, from, (size_t)columns * sizeof *to);
}

/* ---- activations that are rarely asked for ---- */

static void clip(const struct cm_gate_slice *s, float *x)
{
    for (int j = 0; s->has_clip && j < WIDTH; j++) {
        const float above = x[j] < -s->clip ? -s->clip : x[j];
        x[j] = above > s->clip ? s->clip : above;
    }
}

static void activate(const struct cm_recurrent_activation *a, float *x)
{
    const float alpha = a->alpha, beta = a->beta;
    switch (a->kind) {
    case CM_ACT_TANH:
        cm_tanh_floats(WIDTH, x, x);
        return;
    case CM_ACT_SIGMOID:
        cm_sigmoid_floats(WIDTH, x, x);
        return;
    case CM_ACT_SCALED_TANH:
        for (int j = 0; j < WIDTH; j++)
            x[j] *= beta;
        cm_tanh_floats(WIDTH, x, x);
        for (int j = 0; j < WIDTH; j++)
            x[j] *= alpha;
        return;
    default:
        break;
    }
    for (int j = 0; j < WIDTH; j++) {
        const float v = x[j], line = alpha * v + beta;
        float y = v;
        switch (a->kind) {
        case CM_ACT_RELU:
            y = v < 0 ? 0 : v;
            break;
        case CM_ACT_SOFTSIGN:
            y = v / (1 + fabsf(v));
            break;
        case CM_ACT_SOFTPLUS:
            y = cm_softplus_on(CM_PLAIN, v);
            break;
        case CM_ACT_LEAKY_RELU:
            y = v < 0 ? alpha * v : v;
            break;
        case CM_ACT_THRESHOLDED_RELU:
            y = v <= alpha ? 0 : v;
            break;
        case CM_ACT_ELU:
            y = v < 0 ? alpha * cm_expm1_on(CM_PLAIN, v) : v;
            break;
        case CM_ACT_HARD_SIGMOID:
            y = line < 0 ? 0 : line > 1 ? 1 : line;
            break;
        default:
            y = line;
        }
        x[j] = y;
    }
}

static void clip_and_activate(const struct cm_gate_slice *s, int which, float *x)
{
    clip(s, x);
    activate(&s->activations[which], x);
}

/* ---- a row ---- */

/* Past the end of its sequence a sample keeps its state and gives zeros. */
static CM_ALWAYS_INLINE bool is_past(const struct cm_gate_slice *s, int64_t row)
{
    return s->lengths && s->position >= s->lengths[row];
}

static CM_ALWAYS_INLINE void save_h(const struct cm_gate_slice *s, int64_t row, const float *h)
{
    static const float zeros[WIDTH];
    const bool past = is_past(s, row);
    save(past ? s->h + row * s->state_row : h, s->columns, s->next_h + row * s->state_row);
    if (s->y)
        save(past ? zeros : h, s->columns, s->y + row * s->y_row);
}

static CM_ALWAYS_INLINE void keep(const struct cm_gate_slice *s, int64_t row, int part,
                                  const float *values)
{
    if (s->kept)
        save(values, s->columns, s->kept + row * s->kept_row + part * s->hidden);
}

static CM_ALWAYS_INLINE void lstm_row(enum cm_machine machine, const struct cm_gate_slice *s,
                                      int64_t row)
{
    const float *a = s->sums + row * s->sums_row;
    float i[WIDTH], o[WIDTH], f[WIDTH], g[WIDTH], c[WIDTH], h[WIDTH];
    load(s->c + row * s->state_row, s->columns, c);
    CM_ANY_ORDER
    for (int j = 0; j < WIDTH; j++) {
        i[j] = gate_sigmoid(machine, a[j]);
        o[j] = gate_sigmoid(machine, a[WIDTH + j]);
        f[j] = gate_sigmoid(machine, a[2 * WIDTH + j]);
        g[j] = gate_tanh(machine, a[3 * WIDTH + j]);
        c[j] = cm_muladd(machine, f[j], c[j], i[j] * g[j]);
        h[j] = o[j] * gate_tanh(machine, c[j]);
    }
    keep(s, row, 0, i);
    keep(s, row, 1, o);
    keep(s, row, 2, f);
    keep(s, row, 3, g);
    keep(s, row, 4, c);
    if (!is_past(s, row))
        save(c, s->columns, s->c + row * s->state_row);
    save_h(s, row, h);
}

static void add_product(const float *weights, int columns, const float *state, float *sum)
{
    for (int j = 0; weights && j < columns; j++)
        sum[j] += weights[j] * state[j];
}

static void lstm_row_any(const struct cm_gate_slice *s, int64_t row)
{
    const float *p = s->peepholes;
    float gates[4][WIDTH], c[WIDTH], h[WIDTH];
    float *const i = gates[0], *const o = gates[1], *const f = gates[2], *const g = gates[3];
    memcpy(gates, s->sums + row * s->sums_row, sizeof gates);
    load(s->c + row * s->state_row, s->columns, c);
    add_product(p, s->columns, c, i);
    add_product(p ? p + 2 * s->hidden : NULL, s->columns, c, f);
    clip_and_activate(s, 0, i);
    clip_and_activate(s, 0, f);
    clip_and_activate(s, 1, g);
    for (int j = 0; j < WIDTH; j++) {
        f[j] = s->coupled ? 1 - i[j] : f[j];
        c[j] = f[j] * c[j] + i[j] * g[j];
    }
    add_product(p ? p + s->hidden : NULL, s->columns, c, o);
    clip_and_activate(s, 0, o);
    memcpy(h, c, sizeof h);
    activate(&s->activations[2], h);
    for (int j = 0; j < WIDTH; j++)
        h[j] *= o[j];
    for (int part = 0; part < 4; part++)
        keep(s, row, part, gates[part]);
    keep(s, row, 4, c);
    if (!is_past(s, row))
        save(c, s->columns, s->c + row * s->state_row);
    save_h(s, row, h);
}

static CM_ALWAYS_INLINE void gru_row(enum cm_machine machine, const struct cm_gate_slice *s,
                                     int64_t row)
{
    const float *a = s->sums + row * s->sums_row, *x = s->input + row * s->input_row;
    float z[WIDTH], r[WIDTH], n[WIDTH], h[WIDTH];
    load(s->h + row * s->state_row, s->columns, h);
    CM_ANY_ORDER
    for (int j = 0; j < WIDTH; j++) {
        z[j] = gate_sigmoid(machine, x[j] + a[j]);
        r[j] = gate_sigmoid(machine, x[WIDTH + j] + a[WIDTH + j]);
        n[j] = gate_tanh(machine, cm_muladd(machine, r[j], a[2 * WIDTH + j], x[2 * WIDTH + j]));
        h[j] = cm_muladd(machine, z[j], h[j], (1 - z[j]) * n[j]);
    }
    keep(s, row, 0, z);
    keep(s, row, 1, r);
    keep(s, row, 2, n);
    keep(s, row, 3, a + 2 * WIDTH);
    save_h(s, row, h);
}

/* z and r, which take the place of their sums; then the candidate, or what is multiplied for it. */
static void gru_row_any(const struct cm_gate_slice *s, int64_t row, bool candidate_only)
{
    float *a = s->sums + row * s->sums_row, *const z = a, *const r = a + WIDTH;
    const float *x = s->input + row * s->input_row;
    float n[WIDTH], h[WIDTH], memory[WIDTH];
    load(s->h + row * s->state_row, s->columns, h);
    if (!candidate_only) {
        for (int j = 0; j < 2 * WIDTH; j++)
            a[j] += x[j];
        clip_and_activate(s, 0, z);
        clip_and_activate(s, 0, r);
        if (!s->linear) {
            for (int j = 0; j < WIDTH; j++)
                n[j] = r[j] * h[j];
            save(n, s->columns, s->reset + row * s->state_row);
            return;
        }
    }
    memcpy(memory, a + 2 * WIDTH, sizeof memory);
    for (int j = 0; j < WIDTH; j++)
        n[j] = x[2 * WIDTH + j] + (s->linear ? r[j] * memory[j] : memory[j]);
    clip_and_activate(s, 1, n);
    for (int j = 0; j < WIDTH; j++)
        h[j] = (1 - z[j]) * n[j] + z[j] * h[j];
    keep(s, row, 0, z);
    keep(s, row, 1, r);
    keep(s, row, 2, n);
    keep(s, row, 3, memory);
    save_h(s, row, h);
}

static CM_ALWAYS_INLINE void rnn_row(enum cm_machine machine, const struct cm_gate_slice *s,
                                     int64_t row)
{
    const float *a = s->sums + row * s->sums_row;
    float h[WIDTH];
    CM_ANY_ORDER
    for (int j = 0; j < WIDTH; j++)
        h[j] = gate_tanh(machine, a[j]);
    save_h(s, row, h);
}

static void rnn_row_any(const struct cm_gate_slice *s, int64_t row)
{
    float h[WIDTH];
    memcpy(h, s->sums + row * s->sums_row, sizeof h);
    clip_and_activate(s, 0, h);
    save_h(s, row, h);
}

static CM_ALWAYS_INLINE void usual_rows_on(enum cm_machine machine, const struct cm_gate_slice *s)
{
    for (int64_t row = 0; s->kind == CM_LSTM && row < s->rows; row++)
        lstm_row(machine, s, row);
    for (int64_t row = 0; s->kind == CM_GRU && row < s->rows; row++)
        gru_row(machine, s, row);
    for (int64_t row = 0; s->kind == CM_RNN && row < s->rows; row++)
        rnn_row(machine, s, row);
}

CM_BUILDS(usual_rows, (const struct cm_gate_slice *s), (machine, s))

void cm_gates_forward(const struct cm_gate_slice *s)
{
    if (s->is_usual) {
        usual_rows_builds[cm_this_machine()](s);
        return;
    }
    for (int64_t row = 0; row < s->rows; row++) {
        if (s->kind == CM_LSTM)
            lstm_row_any(s, row);
        else if (s->kind == CM_GRU)
            gru_row_any(s, row, false);
        else
            rnn_row_any(s, row);
    }
}

void cm_gates_candidate(const struct cm_gate_slice *s)
{
    for (int64_t row = 0; row < s->rows; row++)
        gru_row_any(s, row, true);
}

/* ---- backwards ---- */

static CM_ALWAYS_INLINE float sigmoid_slope(float y)
{
    return y * (1 - y);
}

static CM_ALWAYS_INLINE float tanh_slope(enum cm_machine machine, float y)
{
    return cm_muladd(machine, -y, y, 1);
}

/* A vector of a row: elements [first, first + columns). */
struct cell {
    int64_t row, first;
    int columns;
};

static CM_ALWAYS_INLINE void load_dh(const struct cm_gate_slice_back *s, struct cell at, float *dh)
{
    float dy[WIDTH];
    load(s->d_h + at.row * s->state_row + at.first, at.columns, dh);
    if (!s->dy)
        return;
    load(s->dy + at.row * s->y_row + at.first, at.columns, dy);
    for (int j = 0; j < WIDTH; j++)
        dh[j] += dy[j];
}

static CM_ALWAYS_INLINE void load_kept(const struct cm_gate_slice_back *s, struct cell at, int part,
                                       float *to)
{
    load(s->kept + at.row * s->kept_row + part * s->hidden + at.first, at.columns, to);
}

static CM_ALWAYS_INLINE void save_gate(const struct cm_gate_slice_back *s, struct cell at, int part,
                                       const float *values)
{
    save(values, at.columns, s->d_gates + at.row * s->gates_row + part * s->hidden + at.first);
}

static CM_ALWAYS_INLINE void lstm_row_back(enum cm_machine machine,
                                           const struct cm_gate_slice_back *s, struct cell at)
{
    float i[WIDTH], o[WIDTH], f[WIDTH], g[WIDTH], c[WIDTH], before[WIDTH], dh[WIDTH], dc[WIDTH];
    load_dh(s, at, dh);
    load(s->d_c + at.row * s->state_row + at.first, at.columns, dc);
    load(s->c + at.row * s->c_row + at.first, at.columns, before);
    load_kept(s, at, 0, i);
    load_kept(s, at, 1, o);
    load_kept(s, at, 2, f);
    load_kept(s, at, 3, g);
    load_kept(s, at, 4, c);
    CM_ANY_ORDER
    for (int j = 0; j < WIDTH; j++) {
        const float t = gate_tanh(machine, c[j]), in = i[j], candidate = g[j], forget = f[j];
        const float d = cm_muladd(machine, dh[j] * o[j], tanh_slope(machine, t), dc[j]);
        i[j] = d * candidate * sigmoid_slope(in);
        o[j] = dh[j] * t * sigmoid_slope(o[j]);
        f[j] = d * before[j] * sigmoid_slope(forget);
        g[j] = d * in * tanh_slope(machine, candidate);
        dc[j] = d * forget;
        dh[j] = 0;
    }
    save_gate(s, at, 0, i);
    save_gate(s, at, 1, o);
    save_gate(s, at, 2, f);
    save_gate(s, at, 3, g);
    save(dc, at.columns, s->d_c + at.row * s->state_row + at.first);
    save(dh, at.columns, s->d_h + at.row * s->state_row + at.first);
}

static CM_ALWAYS_INLINE void gru_row_back(enum cm_machine machine,
                                          const struct cm_gate_slice_back *s, struct cell at)
{
    float z[WIDTH], r[WIDTH], n[WIDTH], memory[WIDTH], h[WIDTH], dh[WIDTH], dn[WIDTH];
    load_dh(s, at, dh);
    load(s->h + at.row * s->h_row + at.first, at.columns, h);
    load_kept(s, at, 0, z);
    load_kept(s, at, 1, r);
    load_kept(s, at, 2, n);
    load_kept(s, at, 3, memory);
    CM_ANY_ORDER
    for (int j = 0; j < WIDTH; j++) {
        const float update = z[j], reset = r[j], d = dh[j];
        const float candidate = d * (1 - update) * tanh_slope(machine, n[j]);
        z[j] = d * (h[j] - n[j]) * sigmoid_slope(update);
        r[j] = candidate * memory[j] * sigmoid_slope(reset);
        memory[j] = candidate * reset;
        dn[j] = candidate;
        dh[j] = d * update;
    }
    save_gate(s, at, 0, memory);
    save_gate(s, at, 1, z);
    save_gate(s, at, 2, r);
    save_gate(s, at, 3, dn);
    save(dh, at.columns, s->d_h + at.row * s->state_row + at.first);
}

static CM_ALWAYS_INLINE void rnn_row_back(enum cm_machine machine,
                                          const struct cm_gate_slice_back *s, struct cell at)
{
    float y[WIDTH], dh[WIDTH];
    load_dh(s, at, dh);
    load(s->y + at.row * s->y_row + at.first, at.columns, y);
    for (int j = 0; j < WIDTH; j++) {
        y[j] = !s->is_relu ? dh[j] * tanh_slope(machine, y[j]) : y[j] > 0 ? dh[j] : 0;
        dh[j] = 0;
    }
    save_gate(s, at, 0, y);
    save(dh, at.columns, s->d_h + at.row * s->state_row + at.first);
}

/* Adds up the gradients of the gates while they are in the cache. */
static CM_ALWAYS_INLINE void add_totals(const struct cm_gate_slice_back *s)
{
    const int parts = s->kind == CM_RNN ? 1 : 4;
    for (int64_t row = 0; s->totals && row < s->rows; row++)
        for (int part = 0; part < parts; part++) {
            const float *from = s->d_gates + row * s->gates_row + part * s->hidden;
            double *totals = s->totals + part * s->hidden;
            CM_ANY_ORDER
            for (int64_t j = 0; j < s->columns; j++)
                totals[j] += (double)from[j];
        }
}

/* Row by row, as the gates are kept: memory is read from one end to the other. */
static CM_ALWAYS_INLINE void rows_back_on(enum cm_machine machine,
                                          const struct cm_gate_slice_back *s)
{
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t first = 0; first < s->columns; first += WIDTH) {
            const int64_t rest = s->columns - first;
            const struct cell at = {row, first, rest < WIDTH ? (int)rest : WIDTH};
            if (s->kind == CM_LSTM)
                lstm_row_back(machine, s, at);
            else if (s->kind == CM_GRU)
                gru_row_back(machine, s, at);
            else
                rnn_row_back(machine, s, at);
        }
    add_totals(s);
}

CM_BUILDS(rows_back, (const struct cm_gate_slice_back *s), (machine, s))

void cm_gates_backward(const struct cm_gate_slice_back *s)
{
    rows_back_builds[cm_this_machine()](s);
}
