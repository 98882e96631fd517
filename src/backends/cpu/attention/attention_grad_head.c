/* The gradient of attention of float tensors, a block of queries at a time: their weights are
 * computed again, and their part of the gradients of keys and values is added to what the blocks
 * before gave. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/attention/attention_tiles.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum { DY, QUERY, KEY, VALUE, MASK };     /* operands */
enum { D_QUERY, D_KEY, D_VALUE, D_MASK }; /* results */
enum { BLOCK = 64 };                      /* queries; whole ROWS */

/* One head. Rows follow each other without gaps. */
struct slope_head {
    const struct attention_plan *plan;
    const float *dy, *q, *k, *v;
    struct attention_mask mask;
    float *dq, *dk, *dv, *d_mask; /* NULL: not wanted */
    /* Scratch: panels of keys and values, keys of whole vectors, sums per key, .. */
    float *key_panels, *value_panels, *keys, *key_sums, *value_sums;
    float *queries, *slopes_in, *weights, *slopes, *result; /* .. a block of queries, ROWS rows */
};

/* Gradients of weights to those of scores, times the scale; those of the mask are without it. */
static CM_ALWAYS_INLINE void turn_slopes(const struct slope_head *h, int64_t query,
                                         const float *weights, float *slopes)
{
    const struct attention_plan *p = h->plan;
    float *d_mask = h->d_mask ? h->d_mask + query * p->mask_strides[2] : NULL;
    double sum = 0, sums[WIDTH] = {0};
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        for (int i = 0; i < WIDTH; i++)
            sums[i] += (double)weights[j + i] * (double)slopes[j + i];
    for (int i = 0; i < WIDTH; i++)
        sum += sums[i];
    const float middle = (float)sum;
    for (int64_t j = 0; j < p->keys_padded; j++)
        slopes[j] = weights[j] * (slopes[j] - middle);
    for (int64_t j = 0; d_mask && j < p->keys; j++)
        d_mask[j] += slopes[j];
    for (int64_t j = 0; j < p->keys_padded; j++)
        slopes[j] *= p->scale;
}

/* Weights, slopes and dq of up to ROWS queries; rows are theirs in the block. */
static CM_ALWAYS_INLINE void turn_rows(enum cm_machine machine, const struct slope_head *h,
                                       const float *keys, int64_t first, int64_t row, int64_t n)
{
    const struct attention_plan *p = h->plan;
    float *weights = h->weights + row * p->keys_padded, *slopes = h->slopes + row * p->keys_padded;
    const float *q[ROWS], *dy[ROWS], *s[ROWS];
    for (int64_t r = 0; r < ROWS; r++) { /* the last ones again where there are no more */
        const int64_t i = r < n ? r : n - 1;
        q[r] = h->q + (first + row + i) * p->size;
        dy[r] = h->dy + (first + row + i) * p->value_size;
        s[r] = slopes + i * p->keys_padded;
    }
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        tile(machine, false, p->size, q, 1, h->key_panels + j * p->size, WIDTH, weights + j,
             p->keys_padded);
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        tile(machine, false, p->value_size, dy, 1, h->value_panels + j * p->value_size, WIDTH,
             slopes + j, p->keys_padded);
    for (int64_t r = 0; r < n; r++) {
        soften(machine, p, &h->mask, first + row + r, weights + r * p->keys_padded);
        turn_slopes(h, first + row + r, weights + r * p->keys_padded, slopes + r * p->keys_padded);
    }
    if (!h->dq)
        return;
    for (int64_t d = 0; d < p->size_padded; d += WIDTH)
        tile(machine, false, p->keys, s, 1, keys + d, p->size_padded, h->result + d,
             p->size_padded);
    for (int64_t r = 0; r < n; r++)
        memcpy(h->dq + (first + row + r) * p->size, h->result + r * p->size_padded,
               (size_t)p->size * sizeof(float));
}

/* sums += a' b for n queries: rows of keys_padded and of `width` elements. */
static CM_ALWAYS_INLINE void add_per_key(enum cm_machine machine, const struct attention_plan *p,
                                         int64_t n, const float *a, const float *b, int64_t width,
                                         float *sums)
{
    for (int64_t j = 0; j < p->keys_padded; j += ROWS) {
        const float *columns[ROWS];
        for (int64_t r = 0; r < ROWS; r++)
            columns[r] = a + j + r;
        for (int64_t d = 0; d < width; d += WIDTH)
            tile(machine, true, n, columns, p->keys_padded, b + d, width, sums + j * width + d,
                 width);
    }
}

static CM_ALWAYS_INLINE void save_rows(int64_t rows, int64_t size, int64_t padded_size,
                                       const float *from, float *to)
{
    for (int64_t j = 0; to && j < rows; j++)
        memcpy(to + j * size, from + j * padded_size, (size_t)size * sizeof *to);
}

static CM_ALWAYS_INLINE void turn_head_on(enum cm_machine machine, const struct slope_head *h)
{
    const struct attention_plan *p = h->plan;
    const float *keys = pad_rows(p->keys, p->size, p->size_padded, h->k, h->keys);
    pack_panels(p->keys, p->keys_padded, p->size, h->k, h->key_panels);
    pack_panels(p->keys, p->keys_padded, p->value_size, h->v, h->value_panels);
    memset(h->key_sums, 0, (size_t)(p->keys_padded * p->size_padded) * sizeof(float));
    memset(h->value_sums, 0, (size_t)(p->keys_padded * p->value_padded) * sizeof(float));
    for (int64_t first = 0; first < p->queries; first += BLOCK) {
        const int64_t n = p->queries - first < BLOCK ? p->queries - first : BLOCK;
        const float *q = pad_rows(n, p->size, p->size_padded, h->q + first * p->size, h->queries);
        const float *dy = pad_rows(n, p->value_size, p->value_padded, h->dy + first * p->value_size,
                                   h->slopes_in);
        for (int64_t row = 0; row < n; row += ROWS)
            turn_rows(machine, h, keys, first, row, n - row < ROWS ? n - row : ROWS);
        if (h->dk)
            add_per_key(machine, p, n, h->slopes, q, p->size_padded, h->key_sums);
        if (h->dv)
            add_per_key(machine, p, n, h->weights, dy, p->value_padded, h->value_sums);
    }
    save_rows(p->keys, p->size, p->size_padded, h->key_sums, h->dk);
    save_rows(p->keys, p->value_size, p->value_padded, h->value_sums, h->dv);
}

CM_BUILDS(turn_head, (const struct slope_head *h), (machine, h))

/* ---- The call ---- */

static const struct cm_tensor *mask_of(const struct cm_call *call)
{
    return call->n_in > MASK ? call->in[MASK] : NULL;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *mask = mask_of(call);
    const struct cm_tensor *const *in = call->in;
    for (int i = DY; i <= VALUE; i++) {
        if (in[i]->type != CM_FLOAT)
            return cm_call_decline_type(call, in[i]);
        if (in[i]->shape.rank != 4)
            return cm_call_decline(call, "the heads have no axis of their own");
    }
    for (int d = 0; d < 2; d++) /* what else must agree is for the operator to refuse */
        for (int i = DY; i <= VALUE; i++)
            if (in[i]->shape.dims[d] != in[QUERY]->shape.dims[d])
                return cm_call_decline(call, "the operands differ in heads");
    if (in[DY]->shape.dims[2] != in[QUERY]->shape.dims[2] ||
        in[DY]->shape.dims[3] != in[VALUE]->shape.dims[3] ||
        in[KEY]->shape.dims[2] != in[VALUE]->shape.dims[2] ||
        in[KEY]->shape.dims[3] != in[QUERY]->shape.dims[3])
        return cm_call_decline(call, "the shapes of the operands do not match");
    if (mask && mask->type != CM_FLOAT && mask->type != CM_BOOL)
        return cm_call_decline_type(call, mask);
    return !mask || mask_lies_over(mask, in[QUERY], in[KEY]) ||
           cm_call_decline(call, "the mask does not broadcast to queries and keys");
}

static bool count_floats(struct attention_plan *p)
{
    const int64_t counts[][2] = {{p->keys_padded, p->size},
                                 {p->keys_padded, p->value_size},
                                 {p->keys, p->size_padded},
                                 {p->keys_padded, p->size_padded},
                                 {p->keys_padded, p->value_padded},
                                 {BLOCK, p->size_padded},
                                 {BLOCK, p->value_padded},
                                 {2 * BLOCK, p->keys_padded},
                                 {ROWS, p->size_padded}};
    for (size_t i = 0; i < CM_COUNT(counts); i++) {
        int64_t floats;
        if (!cm_dim_mul(counts[i][0], counts[i][1], &floats) ||
            !cm_dim_add(p->part_floats, floats, &p->part_floats))
            return false;
    }
    return true;
}

/* How many heads read the same part of the mask and follow each other; their slopes are summed. */
static int64_t heads_of_mask(struct attention_plan *p)
{
    p->by_head = p->mask_strides[1] != 0;
    if (p->by_head)
        return p->batches;
    return p->mask_strides[0] != 0 ? p->heads : p->batches * p->heads;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct attention_plan *p = cm_call_state(call, sizeof *p);
    const bool sums_mask = call->n_out > D_MASK && call->out[D_MASK];
    int64_t floats;
    size_t bytes;
    const bool planned = plan_attention(call->node, call->in[QUERY], call->in[KEY], call->in[VALUE],
                                        mask_of(call), p);
    share_out(p, sums_mask ? heads_of_mask(p) : 1);
    if (!planned || !count_floats(p) || !cm_dim_mul(p->part_floats, p->parts, &floats) ||
        !cm_dtype_bytes(CM_FLOAT, floats, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static void lay_out(struct slope_head *h, float *scratch)
{
    const struct attention_plan *p = h->plan;
    h->key_panels = scratch;
    h->value_panels = h->key_panels + p->keys_padded * p->size;
    h->keys = h->value_panels + p->keys_padded * p->value_size;
    h->key_sums = h->keys + p->keys * p->size_padded;
    h->value_sums = h->key_sums + p->keys_padded * p->size_padded;
    h->queries = h->value_sums + p->keys_padded * p->value_padded;
    h->slopes_in = h->queries + BLOCK * p->size_padded;
    h->weights = h->slopes_in + BLOCK * p->value_padded;
    h->slopes = h->weights + BLOCK * p->keys_padded;
    h->result = h->slopes + BLOCK * p->keys_padded;
}

static const float *floats_of(const struct cm_call *call, int i, int64_t at)
{
    return (const float *)call->in[i]->data + at;
}

static float *result_at(const struct cm_call *call, int o, int64_t at)
{
    return o < call->n_out && call->out[o] ? (float *)call->out[o]->data + at : NULL;
}

static void turn_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct attention_plan *p = call->state;
    void (*const run_head)(const struct slope_head *) = turn_head_builds[cm_this_machine()];
    for (int64_t part = begin; part < end; part++) {
        struct slope_head h = {.plan = p};
        lay_out(&h, (float *)call->scratch + part * p->part_floats);
        const int64_t first = part * p->heads_of_part, next = first + p->heads_of_part;
        for (int64_t n = first; n < next && n < p->batches * p->heads; n++) {
            const int64_t batch = p->by_head ? n % p->batches : n / p->heads;
            const int64_t head = p->by_head ? n / p->batches : n % p->heads;
            const int64_t i = batch * p->heads + head;
            h.dy = floats_of(call, DY, i * p->queries * p->value_size);
            h.q = floats_of(call, QUERY, i * p->queries * p->size);
            h.k = floats_of(call, KEY, i * p->keys * p->size);
            h.v = floats_of(call, VALUE, i * p->keys * p->value_size);
            h.mask = mask_at(mask_of(call), p, batch, head);
            h.dq = result_at(call, D_QUERY, i * p->queries * p->size);
            h.dk = result_at(call, D_KEY, i * p->keys * p->size);
            h.dv = result_at(call, D_VALUE, i * p->keys * p->value_size);
            h.d_mask =
                result_at(call, D_MASK, batch * p->mask_strides[0] + head * p->mask_strides[1]);
            run_head(&h);
        }
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct attention_plan *p = call->state;
    if (call->n_out > D_MASK && call->out[D_MASK] && cm_tensor_count(call->out[D_MASK]) > 0)
        memset(call->out[D_MASK]->data, 0,
               (size_t)cm_tensor_count(call->out[D_MASK]) * sizeof(float));
    cm_parallel(p->parts, 1, turn_parts, call);
    return CM_OK;
}

CM_KERNEL_IN(cpu, "ai.cameo", AttentionGrad, .label = "attention gradient by heads",
             .accepts = accepts, .prepare = prepare, .run = run);
