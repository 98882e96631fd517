/* LSTM, GRU and RNN of floats: the product of the input with its weights for many steps at once;
 * then, step by step, each thread multiplies the state with its slice of the recurrent weights,
 * which stays in its cache, and computes the gates and the next state of that slice. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/recurrent/recurrent_plan.h"
#include "backends/cpu/sgemm.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES }; /* operands */

enum {
    BLOCK_ROWS = 96, /* of the product with the input, at least: what it gives stays in the cache */
};

struct forward_plan {
    struct cm_recurrent_plan base;
    int64_t block; /* steps whose input is multiplied at once */
    int n_states;
    bool is_usual, linear, coupled;
    /* places in scratch */
    int64_t bias, state_bias, input, sums, h[2], c, reset;
};

/* ---- preparing ---- */

static struct cm_tensor *reserve_of(const struct cm_call *call, const struct forward_plan *p)
{
    return cm_recurrent_result(call, p->n_states + 1);
}

static bool is_usual(const struct cm_call *call, const struct forward_plan *p)
{
    static const enum cm_activation usual[] = {CM_ACT_SIGMOID, CM_ACT_TANH, CM_ACT_TANH};
    const struct cm_recurrent_form *form = &p->base.form;
    const int first = p->base.kind == CM_RNN ? 1 : 0, n = p->base.kind == CM_LSTM ? 3 : 2;
    bool same = !form->has_clip && !cm_recurrent_operand(call, PEEPHOLES) && !p->coupled &&
                (p->base.kind != CM_GRU || p->linear);
    for (int d = 0; d < form->directions; d++)
        for (int i = first; i < n; i++)
            same = same && form->activations[d][i - first].kind == usual[i];
    return same;
}

static bool accepts(struct cm_call *call)
{
    struct forward_plan *p = cm_call_state(call, sizeof *p);
    *p = (struct forward_plan){0};
    if (call->in[X]->type != CM_FLOAT)
        return cm_call_decline_type(call, call->in[X]);
    if (!cm_recurrent_plan(call->node, call->in[X], call->in[R], &p->base) ||
        !cm_recurrent_panels(&p->base, p->base.input, true, &p->base.w) ||
        !cm_recurrent_panels(&p->base, p->base.hidden, true, &p->base.r))
        return cm_call_decline(call, "the operands are too large");
    p->linear = cm_node_int(call->node, "linear_before_reset") != 0;
    p->coupled = cm_node_int(call->node, "input_forget") != 0;
    p->n_states = p->base.kind == CM_LSTM ? 2 : 1;
    p->is_usual = is_usual(call, p);
    if (reserve_of(call, p) && (!p->is_usual || cm_recurrent_operand(call, LENGTHS)))
        return cm_call_decline(call, "the gates have an unusual form, and training keeps them");
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct forward_plan *p = call->state;
    struct cm_recurrent_plan *b = &p->base;
    const int64_t dirs = b->form.directions;
    p->block = b->batch < BLOCK_ROWS ? BLOCK_ROWS / (b->batch > 0 ? b->batch : 1) : 1;
    p->block = p->block < b->steps ? p->block : b->steps;
    p->bias = cm_recurrent_place(b, dirs, b->width, 1);
    p->state_bias = cm_recurrent_place(b, dirs, b->width, 1);
    p->sums = cm_recurrent_place(b, dirs, b->batch, b->width);
    p->h[0] = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->h[1] = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->c = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->reset = cm_recurrent_place(b, dirs, b->batch, b->state_row);
    p->input = b->floats;
    cm_recurrent_place(b, dirs * p->block, b->batch, b->width);
    return cm_recurrent_ask(call, b, W, R);
}

/* ---- running ---- */

struct forward_run {
    struct cm_call *call;
    const struct forward_plan *p;
    float *scratch;
    int64_t step, first; /* this one, and the first of its block */
    int64_t in_block;    /* steps of the block */
    bool second;         /* the last gate of a GRU that is not linear before reset */
};

/* Biases in the order of packed columns, zeros where there are none. */
static void place_bias(const struct cm_recurrent_plan *b, const float *bias, float *to)
{
    for (int64_t slice = 0; slice < b->slices; slice++)
        for (int64_t gate = 0; gate < b->gates; gate++)
            for (int64_t j = slice * CM_CELL_SLICE; j < (slice + 1) * CM_CELL_SLICE; j++)
                *to++ += bias && j < b->hidden ? bias[gate * b->hidden + j] : 0;
}

static void load_biases(const struct forward_run *run)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const struct cm_tensor *bias = cm_recurrent_operand(run->call, BIAS);
    const int64_t rows = b->gates * b->hidden;
    for (int64_t d = 0; d < b->form.directions; d++) {
        float *of_input = run->scratch + run->p->bias + d * b->width;
        float *of_state = run->scratch + run->p->state_bias + d * b->width;
        const float *given = bias ? (const float *)bias->data + d * 2 * rows : NULL;
        memset(of_input, 0, (size_t)b->width * sizeof *of_input);
        memset(of_state, 0, (size_t)b->width * sizeof *of_state);
        if (!given)
            continue;
        place_bias(b, given, of_input);
        place_bias(b, given + rows, b->kind == CM_GRU ? of_state : of_input);
    }
}

/* Between a state (directions, batch, hidden), batch first with layout 1, and scratch. */
static void copy_state(const struct cm_recurrent_plan *b, float *tensor, float *scratch, bool out)
{
    const size_t bytes = (size_t)b->hidden * sizeof *scratch;
    const int64_t dirs = b->form.directions;
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t row = 0; row < b->batch; row++) {
            const int64_t at = b->form.batch_first ? row * dirs + d : d * b->batch + row;
            float *in_scratch = scratch + (d * b->batch + row) * b->state_row;
            if (out)
                memcpy(tensor + at * b->hidden, in_scratch, bytes);
            else
                memcpy(in_scratch, tensor + at * b->hidden, bytes);
        }
}

static void load_state(const struct forward_run *run, int operand, int64_t place)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const struct cm_tensor *given = cm_recurrent_operand(run->call, operand);
    float *to = run->scratch + place;
    if (given)
        copy_state(b, given->data, to, false);
    else
        memset(to, 0, (size_t)(b->form.directions * b->batch * b->state_row) * sizeof *to);
}

/* The position in the sequence of a direction's step. */
static int64_t position(const struct cm_recurrent_plan *b, int d, int64_t step)
{
    return b->form.reverse[d] ? b->steps - 1 - step : step;
}

/* Where the block's input of direction d, multiplied, begins; at its lowest position. */
static float *block_input(const struct forward_run *run, int d)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    return run->scratch + run->p->input + d * run->p->block * b->batch * b->width;
}

static int64_t lowest_position(const struct forward_run *run, int d)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    return position(b, d, b->form.reverse[d] ? run->first + run->in_block - 1 : run->first);
}

/* X W plus biases for the steps of a block. */
static void multiply_input(const struct forward_run *run)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const float *x = run->call->in[X]->data;
    for (int d = 0; d < b->form.directions; d++) {
        const int64_t low = lowest_position(run, d);
        struct cm_sgemm product = {.m = run->in_block * b->batch,
                                   .n = b->width,
                                   .k = b->input,
                                   .alpha = 1,
                                   .a = x + low * b->batch * b->input,
                                   .a_row = b->input,
                                   .a_column = 1,
                                   .b = cm_recurrent_weights(&b->w, run->call->in[W], d),
                                   .c = block_input(run, d),
                                   .c_row = b->width,
                                   .d = run->scratch + run->p->bias + d * b->width};
        if (!b->form.batch_first) {
            cm_recurrent_multiply(&product);
            continue;
        }
        product.m = run->in_block;
        product.c_row = b->batch * b->width;
        for (int64_t row = 0; row < b->batch; row++, product.c += b->width) {
            product.a = x + (row * b->steps + low) * b->input;
            cm_recurrent_multiply(&product);
        }
    }
}

/* Columns [begin, end) of one slice of a, a state, times R: as few at a time as can be multiplied
 * without copying the state. */
static void multiply_state(const struct forward_run *run, int d, const float *a, const float *input,
                           int64_t begin, int64_t end)
{
    const struct cm_recurrent_plan *b = &run->p->base;
    const bool is_gru = b->kind == CM_GRU;
    const struct cm_sgemm product = {.m = b->batch,
                                     .n = b->width,
                                     .k = b->hidden,
                                     .alpha = 1,
                                     .a = a,
                                     .a_row = b->state_row,
                                     .a_column = 1,
                                     .b = cm_recurrent_weights(&b->r, run->call->in[R], d),
                                     .c = run->scratch + run->p->sums + d * b->batch * b->width,
                                     .c_row = b->width,
                                     .d = is_gru ? run->scratch + run->p->state_bias + d * b->width
                                                 : input,
                                     .d_row = is_gru ? 0 : b->width};
    const int64_t at_once = b->batch <= CM_FEW_ROWS ? end - begin : CM_FEW_COLUMNS;
    for (int64_t column = begin; column < end; column += at_once)
        cm_sgemm_slice(&product, column, column + at_once < end ? column + at_once : end);
}

static struct cm_gate_slice gates_of(const struct forward_run *run, int d, int64_t slice,
                                     const float *input)
{
    const struct forward_plan *p = run->p;
    const struct cm_recurrent_plan *b = &p->base;
    const struct cm_tensor *lengths = cm_recurrent_operand(run->call, LENGTHS);
    const struct cm_tensor *peepholes = cm_recurrent_operand(run->call, PEEPHOLES);
    const struct cm_tensor *y = cm_recurrent_result(run->call, 0), *kept = reserve_of(run->call, p);
    const int64_t dirs = b->form.directions, first = slice * CM_CELL_SLICE;
    const int64_t rest = b->hidden - first, at = position(b, d, run->step);
    const int64_t state = d * b->batch * b->state_row + first;
    const int64_t parts = (b->kind == CM_LSTM ? 5 : 4) * b->hidden;
    float *scratch = run->scratch;
    struct cm_gate_slice s = {
        .kind = b->kind,
        .activations = b->form.activations[d],
        .is_usual = p->is_usual,
        .has_clip = b->form.has_clip,
        .clip = b->form.clip,
        .coupled = p->coupled,
        .linear = p->linear,
        .rows = b->batch,
        .columns = (int)(rest < CM_CELL_SLICE ? rest : CM_CELL_SLICE),
        .sums = scratch + p->sums + d * b->batch * b->width + first * b->gates,
        .sums_row = b->width,
        .input = input + first * b->gates,
        .input_row = b->width,
        .h = scratch + p->h[run->step % 2] + state,
        .next_h = scratch + p->h[(run->step + 1) % 2] + state,
        .c = scratch + p->c + state,
        .reset = scratch + p->reset + state,
        .state_row = b->state_row,
        .hidden = b->hidden,
        .lengths = lengths ? lengths->data : NULL,
        .position = at,
    };
    if (peepholes)
        s.peepholes = (const float *)peepholes->data + d * 3 * b->hidden + first;
    if (y) {
        s.y = (float *)y->data + first +
              (b->form.batch_first ? at * dirs + d : (at * dirs + d) * b->batch) * b->hidden;
        s.y_row = (b->form.batch_first ? b->steps * dirs : 1) * b->hidden;
    }
    if (kept) {
        s.kept = (float *)kept->data + (d * b->steps + at) * b->batch * parts + first;
        s.kept_row = parts;
    }
    return s;
}

/* Slices [begin, end) of direction d. Where a GRU is not linear before reset, its last gate is
 * computed after all others of the step, from the reset state. */
static void advance_group(const void *arg, int d, int64_t begin, int64_t end)
{
    const struct forward_run *run = arg;
    const struct cm_recurrent_plan *b = &run->p->base;
    const int64_t of_slice = b->gates * CM_CELL_SLICE, state = d * b->batch * b->state_row;
    const bool in_two = b->kind == CM_GRU && !run->p->linear;
    const float *input =
        block_input(run, d) +
        (position(b, d, run->step) - lowest_position(run, d)) * b->batch * b->width;
    const float *h = run->scratch + run->p->h[run->step % 2] + state;
    if (!in_two)
        multiply_state(run, d, h, input, begin * of_slice, end * of_slice);
    for (int64_t slice = begin; slice < end; slice++) {
        const struct cm_gate_slice gates = gates_of(run, d, slice, input);
        const int64_t last = (slice + 1) * of_slice - CM_CELL_SLICE;
        if (in_two && !run->second)
            multiply_state(run, d, h, input, slice * of_slice, last);
        else if (in_two)
            multiply_state(run, d, run->scratch + run->p->reset + state, input, last,
                           last + CM_CELL_SLICE);
        if (run->second)
            cm_gates_candidate(&gates);
        else
            cm_gates_forward(&gates);
    }
}

static void advance_slices(void *arg, int64_t begin, int64_t end)
{
    const struct forward_run *run = arg;
    cm_recurrent_each_group(&run->p->base, begin, end, run->step, advance_group, run);
}

static enum cm_status check_lengths(struct cm_call *call, const struct cm_recurrent_plan *b)
{
    const struct cm_tensor *lengths = cm_recurrent_operand(call, LENGTHS);
    for (int64_t row = 0; lengths && row < b->batch; row++)
        CM_TRY(cm_recurrent_check_length(cm_tensor_int(lengths, row), b->steps, call->err));
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    const struct forward_plan *p = call->state;
    const struct cm_recurrent_plan *b = &p->base;
    struct forward_run run = {.call = call, .p = p, .scratch = call->scratch};
    CM_TRY(check_lengths(call, b));
    load_biases(&run);
    load_state(&run, INITIAL_H, p->h[0]);
    load_state(&run, INITIAL_C, p->c);
    for (run.step = 0; b->batch > 0 && run.step < b->steps; run.step++) {
        if (run.step % p->block == 0) {
            run.first = run.step;
            run.in_block = b->steps - run.step < p->block ? b->steps - run.step : p->block;
            multiply_input(&run);
        }
        cm_recurrent_share(b, advance_slices, &run);
        run.second = b->kind == CM_GRU && !p->linear;
        if (run.second)
            cm_recurrent_share(b, advance_slices, &run);
        run.second = false;
    }
    const int64_t last[] = {p->h[b->steps % 2], p->c};
    for (int i = 0; i < p->n_states; i++) {
        struct cm_tensor *out = cm_recurrent_result(call, i + 1);
        if (out)
            copy_state(b, out->data, run.scratch + last[i], true);
    }
    return CM_OK;
}

CM_KERNEL(cpu, LSTM, .label = "recurrent steps", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, GRU, .label = "recurrent steps", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(cpu, RNN, .label = "recurrent steps", .accepts = accepts, .prepare = prepare, .run = run,
          .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", LSTMTraining, .label = "recurrent steps", .accepts = accepts,
             .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", GRUTraining, .label = "recurrent steps", .accepts = accepts,
             .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
