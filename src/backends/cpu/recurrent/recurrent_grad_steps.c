/* The gradients of LSTM, GRU and RNN of floats: step by step backwards each thread multiplies the
 * gradients of all gates with its slice of the recurrent weights and computes the gradients of its
 * slice of the gates, which it adds up for the biases; those of weights and input are one product
 * each over all steps. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/recurrent/recurrent_plan.h"
#include "backends/cpu/sgemm.h"
#include "graph/backend.h"

enum { X, W, R, Y, INITIAL_H, DY, DY_H, RESERVE, INITIAL_C, DY_C }; /* operands */
enum { DX, DW, DR, DB, D_INITIAL_H, D_INITIAL_C };                  /* results */

enum { DOUBLE = sizeof(double) / sizeof(float) };

struct backward_plan {
    struct cm_recurrent_plan base;
    int parts;         /* of the reserve */
    int64_t samples;   /* steps * batch */
    int64_t gates_row; /* of gradients of gates: all of H R; of a GRU the candidate's of X W too */
    /* places in scratch */
    int64_t d_gates, d_h, d_c, zeros, totals, packed_x, packed_h;
};

/* ---- preparing ---- */

static bool accepts(struct cm_call *call)
{
    struct backward_plan *p = cm_call_state(call, sizeof *p);
    struct cm_recurrent_plan *b = &p->base;
    *p = (struct backward_plan){0};
    if (call->in[X]->type != CM_FLOAT)
        return cm_call_decline_type(call, call->in[X]);
    if (!cm_recurrent_plan(call->node, call->in[X], call->in[R], b) ||
        !cm_recurrent_panels(b, b->input, false, &b->w) ||
        !cm_recurrent_panels(b, b->hidden, false, &b->r))
        return cm_call_decline(call, "the operands are too large");
    b->r.last_first = b->kind == CM_GRU;
    p->parts = b->kind == CM_LSTM ? 5 : b->kind == CM_GRU ? 4 : 0;
    p->gates_row = (b->gates + (b->kind == CM_GRU)) * b->hidden + CM_CELL_SLICE;
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct backward_plan *p = call->state;
    struct cm_recurrent_plan *b = &p->base;
    const int64_t dirs = b->form.directions;
    p->samples = b->steps * b->batch; /* of a tensor that there is */
    p->d_gates = cm_recurrent_place(b, dirs, p->samples, p->gates_row);
    p->d_h = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->d_c = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->zeros = cm_recurrent_place(b, b->state_row, 1, 1);
    p->totals = cm_recurrent_place(b, dirs, p->gates_row, DOUBLE);
    p->packed_h = cm_recurrent_place(b, p->samples, b->state_row, 1);
    p->packed_x = cm_recurrent_place(b, p->samples, b->input + CM_CELL_SLICE, 1);
    return cm_recurrent_ask(call, b, W, R);
}

/* ---- steps ---- */

struct backward_run {
    struct cm_call *call;
    const struct backward_plan *p;
    float *scratch;
    int direction; /* of what is summed */
    int64_t step;  /* counted on the way back; all of them: what is left after the last */
};

static const float *data_of(const struct cm_call *call, int i)
{
    const struct cm_tensor *tensor = cm_recurrent_operand(call, i);
    return tensor ? tensor->data : NULL;
}

static float *result_of(const struct cm_call *call, int o)
{
    struct cm_tensor *tensor = cm_recurrent_result(call, o);
    return tensor ? tensor->data : NULL;
}

static int64_t position(const struct cm_recurrent_plan *b, int d, int64_t step)
{
    return b->form.reverse[d] ? step : b->steps - 1 - step;
}

/* Rows of a state before a step, or NULL: the initial ones at position `at`, which is none. */
static const float *h_before(const struct backward_run *run, int d, int64_t at)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const int64_t last = b->form.reverse[d] ? at + 1 : at - 1;
    const float *first = data_of(run->call, INITIAL_H);
    if (last >= 0 && last < b->steps)
        return data_of(run->call, Y) + (last * b->form.directions + d) * b->batch * b->hidden;
    return first ? first + d * b->batch * b->hidden : NULL;
}

static void set_c_before(const struct backward_run *run, int d, int64_t at,
                         struct cm_gate_slice_back *s)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const int64_t last = b->form.reverse[d] ? at + 1 : at - 1, parts = run->p->parts * b->hidden;
    const float *first = data_of(run->call, INITIAL_C);
    s->c = run->scratch + run->p->zeros;
    if (last >= 0 && last < b->steps) {
        s->c = data_of(run->call, RESERVE) + (d * b->steps + last) * b->batch * parts +
               (run->p->parts - 1) * b->hidden;
        s->c_row = parts;
    } else if (first) {
        s->c = first + d * b->batch * b->hidden;
        s->c_row = b->hidden;
    }
}

static float *gates_at(const struct backward_run *run, int d, int64_t at)
{
    const struct backward_plan *p = run->p;
    return run->scratch + p->d_gates + (d * p->samples + at * p->base.batch) * p->gates_row;
}

/* The sums of a direction's gradients of gates over all steps. */
static double *totals_of(const struct backward_run *run, int d)
{
    const struct backward_plan *p = run->p;
    return (double *)(void *)(run->scratch + p->totals) + d * p->gates_row;
}

/* The gates of slices [begin, end) of direction d. */
static void turn_gates(const void *arg, int d, int64_t begin, int64_t end)
{
    const struct backward_run *run = arg;
    const struct backward_plan *p = run->p;
    const struct cm_recurrent_plan *b = &p->base;
    const int64_t at = position(b, d, run->step), first = begin * CM_CELL_SLICE;
    const int64_t rest = b->hidden - first, columns = (end - begin) * CM_CELL_SLICE;
    const int64_t parts = p->parts * b->hidden;
    const int64_t state = d * b->batch * b->state_row + first;
    const int64_t of_y = (at * b->form.directions + d) * b->batch * b->hidden + first;
    const float *dy = data_of(run->call, DY), *h = h_before(run, d, at);
    struct cm_gate_slice_back s = {
        .kind = b->kind,
        .is_relu = b->kind == CM_RNN && b->form.activations[d][0].kind == CM_ACT_RELU,
        .rows = b->batch,
        .columns = rest < columns ? rest : columns,
        .hidden = b->hidden,
        .dy = dy ? dy + of_y : NULL,
        .y = data_of(run->call, Y) + of_y,
        .y_row = b->hidden,
        .d_h = run->scratch + p->d_h + state,
        .d_c = run->scratch + p->d_c + state,
        .state_row = b->state_row,
        .h = h ? h + first : run->scratch + p->zeros,
        .h_row = h ? b->hidden : 0,
        .d_gates = gates_at(run, d, at) + first,
        .gates_row = p->gates_row,
        .totals = result_of(run->call, DB) ? totals_of(run, d) + first : NULL,
    };
    if (b->kind == CM_LSTM) {
        set_c_before(run, d, at, &s);
        s.c += s.c_row ? first : 0;
    }
    if (p->parts) {
        s.kept = data_of(run->call, RESERVE) + (d * b->steps + at) * b->batch * parts + first;
        s.kept_row = parts;
    }
    cm_gates_backward(&s);
}

/* What the gates of the step before hand to slices [begin, end) of direction d of the state. */
static void turn_state(const void *arg, int d, int64_t begin, int64_t end)
{
    const struct backward_run *run = arg;
    const struct backward_plan *p = run->p;
    const struct cm_recurrent_plan *b = &p->base;
    float *d_h = run->scratch + p->d_h + d * b->batch * b->state_row;
    const int64_t last = end * CM_CELL_SLICE < b->hidden ? end * CM_CELL_SLICE : b->hidden;
    cm_sgemm_slice(&(struct cm_sgemm){.m = b->batch,
                                      .n = b->hidden,
                                      .k = b->gates * b->hidden,
                                      .alpha = 1,
                                      .a = gates_at(run, d, position(b, d, run->step - 1)),
                                      .a_row = p->gates_row,
                                      .a_column = 1,
                                      .b = cm_recurrent_weights(&b->r, run->call->in[R], d),
                                      .c = d_h,
                                      .c_row = b->state_row,
                                      .d = d_h,
                                      .d_row = b->state_row},
                   begin * CM_CELL_SLICE, last);
}

static void turn_slices(void *arg, int64_t begin, int64_t end)
{
    const struct backward_run *run = arg;
    const struct cm_recurrent_plan *b = &run->p->base;
    if (run->step > 0)
        cm_recurrent_each_group(b, begin, end, run->step, turn_state, run);
    if (run->step < b->steps)
        cm_recurrent_each_direction(b, begin, end, turn_gates, run);
}

static void copy_state(const struct cm_recurrent_plan *b, float *tensor, float *scratch, bool out)
{
    for (int64_t row = 0; row < b->form.directions * b->batch; row++) {
        float *there = tensor + row * b->hidden, *here = scratch + row * b->state_row;
        memcpy(out ? there : here, out ? here : there, (size_t)b->hidden * sizeof *here);
    }
}

static void load_state(const struct backward_run *run, int operand, int64_t place)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const struct cm_tensor *given = cm_recurrent_operand(run->call, operand);
    float *to = run->scratch + place;
    memset(to, 0, (size_t)(b->form.directions * b->batch * b->state_row) * sizeof *to);
    if (given)
        copy_state(b, given->data, to, false);
}

/* ---- what is summed over all steps ---- */

/* Columns [from, from + count) of gradients of gates, and the first row of the weights that they
 * belong to. */
struct gate_columns {
    int64_t from, count, row;
};

/* A GRU has its last gate's of H R first and of X W last (recurrent_gates.h). */
static struct gate_columns input_columns(const struct backward_plan *p)
{
    const int64_t n = p->base.hidden;
    return (struct gate_columns){p->base.kind == CM_GRU ? n : 0, p->base.gates * n, 0};
}

/* Transposed gradients of gates times a packed matrix of a row for each sample. */
static void multiply_gates(const struct backward_run *run, int d, struct gate_columns columns,
                           const float *packed, int64_t n, float *to)
{
    const struct backward_plan *p = run->p;
    cm_recurrent_multiply(&(struct cm_sgemm){.m = columns.count,
                                             .n = n,
                                             .k = p->samples,
                                             .alpha = 1,
                                             .a = gates_at(run, d, 0) + columns.from,
                                             .a_row = 1,
                                             .a_column = p->gates_row,
                                             .b = packed,
                                             .c = to + columns.row * n,
                                             .c_row = n});
}

static void find_dw(const struct backward_run *run, int d, float *dw)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    float *packed = run->scratch + run->p->packed_x;
    if (d == 0)
        cm_sgemm_pack(run->p->samples, b->input, data_of(run->call, X), b->input, 1, packed);
    multiply_gates(run, d, input_columns(run->p), packed, b->input,
                   dw + d * b->gates * b->hidden * b->input);
}

/* Floats that are packed in the time it takes to wake other threads. */
enum { PACKED_AT_ONCE = 1 << 14 };

/* The states before steps [begin, end), one behind the other. */
static void pack_before(void *arg, int64_t begin, int64_t end)
{
    const struct backward_run *run = arg;
    const struct cm_recurrent_plan *b = &run->p->base;
    for (int64_t at = begin; at < end; at++) {
        const float *h = h_before(run, run->direction, at);
        cm_sgemm_pack_rows(
            run->p->samples, b->hidden, h ? h : run->scratch + run->p->zeros, h ? b->hidden : 0, 1,
            run->scratch + run->p->packed_h + at * b->batch * CM_SGEMM_PANEL, 0, b->batch);
    }
}

static void find_dr(struct backward_run *run, int d, float *dr)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const int64_t rows = b->gates * b->hidden;
    float *packed = run->scratch + run->p->packed_h;
    run->direction = d;
    cm_parallel(b->steps, PACKED_AT_ONCE / (b->batch * b->hidden + 1) + 1, pack_before, run);
    const int64_t turned = b->kind == CM_GRU ? b->hidden : 0, others = rows - turned;
    dr += d * rows * b->hidden;
    multiply_gates(run, d, (struct gate_columns){0, turned, others}, packed, b->hidden, dr);
    multiply_gates(run, d, (struct gate_columns){turned, others, 0}, packed, b->hidden, dr);
}

static void find_dx(const struct backward_run *run, int d, float *dx)
{
    const struct backward_plan *p = run->p;
    const struct cm_recurrent_plan *b = &p->base;
    const struct gate_columns columns = input_columns(p);
    cm_recurrent_multiply(&(struct cm_sgemm){.m = p->samples,
                                             .n = b->input,
                                             .k = columns.count,
                                             .alpha = 1,
                                             .a = gates_at(run, d, 0) + columns.from,
                                             .a_row = p->gates_row,
                                             .a_column = 1,
                                             .b = cm_recurrent_weights(&b->w, run->call->in[W], d),
                                             .c = dx,
                                             .c_row = b->input,
                                             .d = d > 0 ? dx : NULL,
                                             .d_row = b->input});
}

/* The sums as gradients of both biases. */
static void find_db(const struct backward_run *run, int d, float *db)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const int64_t rows = b->gates * b->hidden, turned = b->kind == CM_GRU ? b->hidden : 0;
    const double *totals = totals_of(run, d);
    float *of_input = db + d * 2 * rows, *of_state = of_input + rows;
    for (int64_t j = 0; j < rows; j++) {
        of_input[j] = (float)totals[j + turned];
        of_state[j] = (float)totals[j < rows - turned ? j + turned : j + turned - rows];
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct backward_plan *p = call->state;
    const struct cm_recurrent_plan *b = &p->base;
    struct backward_run run = {.call = call, .p = p, .scratch = call->scratch};
    float *const dx = result_of(call, DX), *const dw = result_of(call, DW);
    float *const dr = result_of(call, DR), *const db = result_of(call, DB);
    float *const d_h = result_of(call, D_INITIAL_H);
    memset(run.scratch + p->zeros, 0, (size_t)b->state_row * sizeof(float));
    memset(totals_of(&run, 0), 0,
           (size_t)(b->form.directions * p->gates_row) * sizeof *totals_of(&run, 0));
    load_state(&run, DY_H, p->d_h);
    load_state(&run, DY_C, p->d_c);
    for (run.step = 0; b->batch > 0 && run.step < b->steps + (d_h != NULL); run.step++)
        cm_recurrent_share(b, turn_slices, &run);
    for (int d = 0; d < b->form.directions; d++) {
        if (dw)
            find_dw(&run, d, dw);
        if (dr)
            find_dr(&run, d, dr);
        if (dx)
            find_dx(&run, d, dx);
        if (db)
            find_db(&run, d, db);
    }
    if (d_h)
        copy_state(b, d_h, run.scratch + p->d_h, true);
    if (result_of(call, D_INITIAL_C))
        copy_state(b, result_of(call, D_INITIAL_C), run.scratch + p->d_c, true);
    return CM_OK;
}

CM_KERNEL_IN(cpu, "ai.cameo", LSTMGrad, .label = "recurrent gradient steps", .accepts = accepts,
             .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", GRUGrad, .label = "recurrent gradient steps", .accepts = accepts,
             .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", RNNGrad, .label = "recurrent gradient steps", .accepts = accepts,
             .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
