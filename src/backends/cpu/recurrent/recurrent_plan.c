/* Sizes and packed weights of recurrent operators. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/recurrent/recurrent_plan.h"

#include "backends/cpu/sgemm.h"
#include "base/number.h"

/* ---- weights as panels ---- */

static int64_t slices_of(int64_t hidden)
{
    return hidden / CM_CELL_SLICE + (hidden % CM_CELL_SLICE != 0);
}

static int64_t direction_floats(const struct cm_weight_panels *p)
{
    int64_t floats = 0;
    if (p->by_gates)
        return slices_of(p->hidden) * p->gates * CM_CELL_SLICE * p->input;
    return cm_sgemm_packed_floats(p->gates * p->hidden, p->input, &floats) ? floats : 0;
}

static bool same_panels(const struct cm_layout *a, const struct cm_layout *b)
{
    const struct cm_weight_panels *x = (const struct cm_weight_panels *)a;
    const struct cm_weight_panels *y = (const struct cm_weight_panels *)b;
    return x->directions == y->directions && x->gates == y->gates && x->hidden == y->hidden &&
           x->input == y->input && x->by_gates == y->by_gates && x->last_first == y->last_first;
}

/* One direction of weights, and where its panels go. */
struct packing_weights {
    const struct cm_weight_panels *panels;
    const cm_loose_float *from;
    float *to;
};

/* Transposed: element (i, j) is from[j * input + i]. */
static void pack_gates(void *arg, int64_t begin, int64_t end)
{
    const struct packing_weights *weights = arg;
    const struct cm_weight_panels *p = weights->panels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t gate = i % p->gates, first = i / p->gates * CM_CELL_SLICE;
        const int64_t rest = p->hidden - first;
        const int64_t columns = rest < CM_CELL_SLICE ? rest : CM_CELL_SLICE;
        cm_sgemm_pack_slice(p->input, columns,
                            weights->from + (gate * p->hidden + first) * p->input, 1, p->input,
                            weights->to + i * CM_CELL_SLICE * p->input, 0, columns);
    }
}

/* Row by row, the last gate's rows before the others. */
static void pack_last_first(void *arg, int64_t begin, int64_t end)
{
    const struct packing_weights *weights = arg;
    const struct cm_weight_panels *p = weights->panels;
    const int64_t rows = p->gates * p->hidden, others = rows - p->hidden;
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = i * CM_SGEMM_PANEL, rest = p->input - j;
        const int64_t n = rest < CM_SGEMM_PANEL ? rest : CM_SGEMM_PANEL;
        const cm_loose_float *from = weights->from + j;
        float *to = weights->to + j * rows;
        cm_sgemm_pack_slice(p->hidden, n, from + others * p->input, p->input, 1, to, 0, n);
        cm_sgemm_pack_slice(others, n, from, p->input, 1, to + p->hidden * CM_SGEMM_PANEL, 0, n);
    }
}

/* Panels that are packed in the time it takes to wake other threads. */
enum { PANELS_AT_ONCE = 4 };

static enum cm_status pack(const struct cm_tensor *from, struct cm_tensor *to, struct cm_error *err)
{
    const struct cm_weight_panels *p = (const struct cm_weight_panels *)to->layout;
    if (from->layout || !p)
        return cm_fail(err, CM_UNSUPPORTED, "only recurrent operators read panels of gates");
    for (int64_t d = 0; d < p->directions; d++) {
        const cm_loose_float *w =
            (const cm_loose_float *)from->data + d * p->gates * p->hidden * p->input;
        float *packed = (float *)to->data + d * direction_floats(p);
        struct packing_weights weights = {p, w, packed};
        if (p->by_gates)
            cm_parallel(slices_of(p->hidden) * p->gates, PANELS_AT_ONCE, pack_gates, &weights);
        else if (p->last_first)
            cm_parallel(slices_of(p->input), PANELS_AT_ONCE, pack_last_first, &weights);
        else
            cm_sgemm_pack(p->gates * p->hidden, p->input, w, p->input, 1, packed);
    }
    return CM_OK;
}

bool cm_recurrent_panels(const struct cm_recurrent_plan *plan, int64_t input, bool by_gates,
                         struct cm_weight_panels *out)
{
    const int64_t columns = by_gates ? plan->width : input + CM_CELL_SLICE;
    const int64_t rows = by_gates ? input : plan->gates * plan->hidden;
    int64_t floats;
    size_t bytes;
    *out = (struct cm_weight_panels){.directions = plan->form.directions,
                                     .gates = plan->gates,
                                     .hidden = plan->hidden,
                                     .input = input,
                                     .by_gates = by_gates};
    if (!cm_dim_mul(columns, rows, &floats) || !cm_dim_mul(floats, 2, &floats) ||
        !cm_dtype_bytes(CM_FLOAT, floats, &bytes))
        return false;
    bytes = (size_t)(direction_floats(out) * out->directions) * sizeof(float);
    out->base = (struct cm_layout){.name = by_gates ? "gate panels" : "panels of directions",
                                   .bytes = bytes,
                                   .size = sizeof *out,
                                   .same = same_panels,
                                   .reorder = pack,
                                   .reads_unaligned = true};
    return true;
}

const float *cm_recurrent_weights(const struct cm_weight_panels *panels,
                                  const struct cm_tensor *packed, int d)
{
    return (const float *)packed->data + d * direction_floats(panels);
}

/* ---- sizes ---- */

/* Multiplications of a step from which its slices are shared out: fewer are done before the other
 * threads are awake. A weight that is read for few samples counts as if there were more. */
enum { WORTH_A_TEAM = 1 << 18, LEAST_ROWS = 4 };

static enum cm_cell_kind kind_of(const struct cm_node *node)
{
    return node->op_type.data[0] == 'L' ? CM_LSTM : node->op_type.data[0] == 'G' ? CM_GRU : CM_RNN;
}

bool cm_recurrent_plan(const struct cm_node *node, const struct cm_tensor *x,
                       const struct cm_tensor *r, struct cm_recurrent_plan *plan)
{
    static const enum cm_activation usual[][CM_CELL_ACTIVATIONS] = {
        [CM_LSTM] = {CM_ACT_SIGMOID, CM_ACT_TANH, CM_ACT_TANH},
        [CM_GRU] = {CM_ACT_SIGMOID, CM_ACT_TANH},
        [CM_RNN] = {CM_ACT_TANH},
    };
    static const int gates[] = {[CM_LSTM] = 4, [CM_GRU] = 3, [CM_RNN] = 1};
    plan->kind = kind_of(node);
    plan->gates = gates[plan->kind];
    cm_recurrent_form(node,
                      plan->kind == CM_LSTM  ? 3
                      : plan->kind == CM_GRU ? 2
                                             : 1,
                      usual[plan->kind], &plan->form);
    plan->steps = x->shape.dims[plan->form.batch_first];
    plan->batch = x->shape.dims[!plan->form.batch_first];
    plan->input = x->shape.dims[2];
    plan->hidden = r->shape.dims[2];
    plan->slices = slices_of(plan->hidden);
    plan->width = plan->slices * plan->gates * CM_CELL_SLICE;
    const double rows = (double)(plan->batch > LEAST_ROWS ? plan->batch : LEAST_ROWS);
    const double work =
        rows * (double)plan->hidden * (double)(plan->gates * plan->hidden) * plan->form.directions;
    plan->alone = work < WORTH_A_TEAM;
    plan->state_row = plan->slices * CM_CELL_SLICE + CM_CELL_SLICE;
    plan->fits = true;
    return plan->hidden <= INT32_MAX;
}

void cm_recurrent_share(const struct cm_recurrent_plan *plan, cm_chunk_fn *fn, void *arg)
{
    const int64_t count = plan->slices * plan->form.directions;
    const int64_t threads = plan->alone ? 1 : cm_parallel_threads();
    cm_parallel(count, (count + threads - 1) / threads, fn, arg);
}

/* With few samples many slices at once, so that there are enough sums to hide the time that each
 * takes; else as many as a product reads rows for without copying them. */
static int64_t group_size(const struct cm_recurrent_plan *plan)
{
    enum { COLUMNS_OF_FEW_ROWS = 64 };
    return plan->batch <= CM_FEW_ROWS ? COLUMNS_OF_FEW_ROWS / CM_CELL_SLICE
                                      : CM_FEW_COLUMNS / CM_CELL_SLICE;
}

void cm_recurrent_each_direction(const struct cm_recurrent_plan *plan, int64_t begin, int64_t end,
                                 cm_slices_fn *fn, const void *arg)
{
    const int64_t slices = plan->slices;
    for (int d = (int)(begin / slices); d * slices < end; d++)
        fn(arg, d, begin > d * slices ? begin - d * slices : 0,
           end < (d + 1) * slices ? end - d * slices : slices);
}

struct grouping {
    int64_t size, step;
    cm_slices_fn *fn;
    const void *arg;
};

static void each_group(const void *arg, int d, int64_t first, int64_t last)
{
    const struct grouping *g = arg;
    const int64_t groups = (last - first + g->size - 1) / g->size;
    for (int64_t i = 0; i < groups; i++) {
        const int64_t from = first + (g->step % 2 ? groups - 1 - i : i) * g->size;
        g->fn(g->arg, d, from, from + g->size < last ? from + g->size : last);
    }
}

void cm_recurrent_each_group(const struct cm_recurrent_plan *plan, int64_t begin, int64_t end,
                             int64_t step, cm_slices_fn *fn, const void *arg)
{
    const struct grouping grouping = {group_size(plan), step, fn, arg};
    cm_recurrent_each_direction(plan, begin, end, each_group, &grouping);
}

enum {
    SAME_LINES = 1024,    /* rows this far apart evict each other from the first-level cache */
    BLOCK_ROWS = 24,      /* two tiles */
    MOST_BLOCK_ROWS = 96, /* for which a part of a long right operand is read once */
    BLOCK_COLUMNS = 256,  /* for which rows of a transposed operand are copied once */
    BLOCKS_OF_A_THREAD = 4,
    WORTH_A_TEAM_ONCE = 1 << 21, /* multiplications of a whole product */
};

struct multiplying {
    const struct cm_sgemm *product;
    int64_t rows, along_rows, blocks;
};

static void set_rows(struct multiplying *m, int64_t rows)
{
    m->rows = rows;
    m->along_rows = (m->product->m + rows - 1) / rows;
    m->blocks = m->along_rows * ((m->product->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS);
}

static void multiply_blocks(void *arg, int64_t begin, int64_t end)
{
    const struct multiplying *m = arg;
    const struct cm_sgemm *p = m->product;
    const bool in_place = p->a_column == 1 && p->a_row % SAME_LINES != 0;
    const int64_t at_once = in_place ? CM_FEW_COLUMNS : BLOCK_COLUMNS;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % m->along_rows * m->rows, column = i / m->along_rows * BLOCK_COLUMNS;
        const int64_t end_row = row + m->rows < p->m ? row + m->rows : p->m;
        const int64_t last = column + BLOCK_COLUMNS < p->n ? column + BLOCK_COLUMNS : p->n;
        for (int64_t j = column; j < last; j += at_once)
            cm_sgemm_block(p, row, end_row, j, j + at_once < last ? j + at_once : last);
    }
}

/* Blocks are as high as the threads have enough of; the bits are the same. */
void cm_recurrent_multiply(const struct cm_sgemm *product)
{
    struct multiplying m = {.product = product};
    const double work = (double)product->m * (double)product->n * (double)product->k;
    const int64_t enough = BLOCKS_OF_A_THREAD * cm_parallel_threads();
    int64_t rows = product->a_column == 1 ? BLOCK_ROWS : MOST_BLOCK_ROWS;
    for (set_rows(&m, rows); rows > BLOCK_ROWS && m.blocks < enough; set_rows(&m, rows))
        rows /= 2;
    if (m.blocks > 0)
        cm_parallel(m.blocks, work < WORTH_A_TEAM_ONCE ? m.blocks : 1, multiply_blocks, &m);
}

int64_t cm_recurrent_place(struct cm_recurrent_plan *plan, int64_t a, int64_t b, int64_t c)
{
    const int64_t at = plan->floats;
    int64_t count;
    plan->fits = plan->fits && cm_dim_mul(a, b, &count) && cm_dim_mul(count, c, &count) &&
                 cm_dim_add(count, CM_CELL_SLICE - 1, &count) &&
                 cm_dim_add(at, count / CM_CELL_SLICE * CM_CELL_SLICE, &plan->floats);
    return at;
}

enum cm_status cm_recurrent_ask(struct cm_call *call, const struct cm_recurrent_plan *plan, int w,
                                int r)
{
    size_t bytes;
    if (!plan->fits || !cm_dtype_bytes(CM_FLOAT, plan->floats, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    cm_call_want_layout(call, w, &plan->w.base);
    cm_call_want_layout(call, r, &plan->r.base);
    return CM_OK;
}
