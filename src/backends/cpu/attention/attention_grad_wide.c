/* The gradient of attention of doubles, one query after the other: heads are shared out among
 * threads. attention_grad_head.c has the kernel for floats. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/line.h"

#include <math.h>

enum { DY, Q, K, V, MASK };          /* operands */
enum { D_Q, D_K, D_V, D_MASK };      /* results */
enum { BATCH, HEADS, PLACES, SIZE }; /* axes */

struct attention_slopes {
    int64_t heads, queries, keys, size, value_size; /* heads of all batches */
    int64_t heads_of_batch;
    int64_t mask_strides[3]; /* of batch, head, query */
    double scale;
    bool causal;
    int64_t parts, heads_of_part, part_doubles;
};

/* What one part computes with. */
struct slope_buffers {
    double *q, *k, *v, *dy, *dq, *dk, *dv; /* of a head; q, dy and dq of one query */
    double *weights, *slopes, *bias;       /* per key */
};

enum { MOST_PARTS = 32 };

static bool shape_is(const struct cm_tensor *x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t *dims = x->shape.dims;
    return x->shape.rank == 4 && dims[0] == a && dims[1] == b && dims[2] == c && dims[3] == d;
}

static const struct cm_tensor *mask_of(const struct cm_call *call)
{
    return call->n_in > MASK ? call->in[MASK] : NULL;
}

static struct cm_tensor *mask_slopes(const struct cm_call *call)
{
    return call->n_out > D_MASK ? call->out[D_MASK] : NULL;
}

static bool plan_mask(struct cm_call *call, struct attention_slopes *a)
{
    const struct cm_tensor *mask = mask_of(call);
    const int64_t *q = call->in[Q]->shape.dims;
    const int64_t whole[] = {q[BATCH], q[HEADS], q[PLACES]};
    int64_t stride = 1;
    if (!mask)
        return true;
    const int rank = mask->shape.rank;
    bool fits = rank >= 1 && rank <= 4 && mask->shape.dims[rank - 1] == a->keys;
    for (int d = 0; fits && d + 1 < rank; d++)
        fits = mask->shape.dims[d] == 1 || mask->shape.dims[d] == whole[4 - rank + d];
    if (!fits)
        return cm_call_decline(call, "the mask does not broadcast to queries and keys");
    for (int i = rank - 2, axis = 2; i >= 0; i--, axis--) {
        stride *= mask->shape.dims[i + 1];
        a->mask_strides[axis] = mask->shape.dims[i] == 1 ? 0 : stride;
    }
    return true;
}

static bool plan(struct cm_call *call, struct attention_slopes *a)
{
    const int64_t *q = call->in[Q]->shape.dims, *v = call->in[V]->shape.dims;
    *a = (struct attention_slopes){0};
    for (int i = DY; i <= V; i++)
        if (call->in[i]->shape.rank != 4)
            return cm_call_decline(call, "the heads have no axis of their own");
    a->heads_of_batch = q[HEADS];
    a->heads = q[BATCH] * q[HEADS];
    a->queries = q[PLACES];
    a->size = q[SIZE];
    a->keys = v[PLACES];
    a->value_size = v[SIZE];
    if (!shape_is(call->in[K], q[BATCH], q[HEADS], a->keys, a->size) ||
        !shape_is(call->in[V], q[BATCH], q[HEADS], a->keys, a->value_size) ||
        !shape_is(call->in[DY], q[BATCH], q[HEADS], a->queries, a->value_size))
        return cm_call_decline(call, "the shapes of the operands do not match");
    a->causal = cm_node_int(call->node, "is_causal") != 0;
    a->scale = cm_node_has_attr(call->node, "scale") ? (double)cm_node_float(call->node, "scale")
                                                     : 1 / sqrt((double)a->size);
    /* Heads may share the mask: its gradient is summed in one part. */
    a->parts = mask_slopes(call) ? 1 : a->heads < MOST_PARTS ? a->heads : MOST_PARTS;
    a->heads_of_part = a->parts > 0 ? (a->heads + a->parts - 1) / a->parts : 0;
    return plan_mask(call, a);
}

static bool accepts(struct cm_call *call)
{
    struct attention_slopes a;
    if (cm_tensor_count(call->in[Q]) == 0)
        return cm_call_decline_empty(call, call->in[Q]);
    return plan(call, &a);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct attention_slopes *a = cm_call_state(call, sizeof *a);
    int64_t of_keys, of_values, doubles;
    size_t bytes;
    plan(call, a);
    if (!cm_dim_mul(a->keys, 2, &of_keys) || !cm_dim_mul(of_keys, a->size, &of_keys) ||
        !cm_dim_mul(a->keys, 2, &of_values) || !cm_dim_mul(of_values, a->value_size, &of_values) ||
        !cm_dim_add(of_keys, of_values, &a->part_doubles) ||
        !cm_dim_add(a->part_doubles, 3 * a->keys + 2 * a->size + a->value_size, &a->part_doubles) ||
        !cm_dim_mul(a->part_doubles, a->parts, &doubles) ||
        !cm_dtype_bytes(CM_DOUBLE, doubles, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static struct slope_buffers buffers_at(const struct attention_slopes *a, double *at)
{
    struct slope_buffers b = {.k = at};
    b.v = b.k + a->keys * a->size;
    b.dk = b.v + a->keys * a->value_size;
    b.dv = b.dk + a->keys * a->size;
    b.weights = b.dv + a->keys * a->value_size;
    b.slopes = b.weights + a->keys;
    b.bias = b.slopes + a->keys;
    b.q = b.bias + a->keys;
    b.dq = b.q + a->size;
    b.dy = b.dq + a->size;
    return b;
}

static double dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* y += factor * x */
static void add_scaled(int64_t n, double factor, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

static void fill_bias(const struct cm_call *call, const struct attention_slopes *a, int64_t query,
                      int64_t mask_at, double *bias)
{
    const struct cm_tensor *mask = mask_of(call);
    for (int64_t j = 0; j < a->keys; j++) {
        bias[j] = a->causal && j > query ? (double)-INFINITY : 0;
        if (mask && mask->type == CM_BOOL)
            bias[j] = ((const uint8_t *)mask->data)[mask_at + j] ? bias[j] : (double)-INFINITY;
        else if (mask)
            bias[j] += cm_tensor_real(mask, mask_at + j);
    }
}

/* Softmax of the scores. A query that may see no key has no weights. */
static void weigh(const struct attention_slopes *a, const struct slope_buffers *b)
{
    double most = (double)-INFINITY, sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        b->weights[j] = a->scale * dot(a->size, b->q, b->k + j * a->size) + b->bias[j];
        most = b->weights[j] > most ? b->weights[j] : most;
    }
    for (int64_t j = 0; j < a->keys; j++) {
        if (most > (double)-INFINITY)
            b->weights[j] = exp(b->weights[j] - most);
        else
            b->weights[j] = b->weights[j] == b->weights[j] ? 0 : b->weights[j];
        sum += b->weights[j];
    }
    for (int64_t j = 0; j < a->keys && sum != 0; j++)
        b->weights[j] /= sum;
}

/* With weights p: dv = p' dy, ds = p * (dp - sum(dp * p)) with dp = dy v', dq = scale * ds k,
 * dk = scale * ds' q; ds is the mask's. */
static void turn_query(const struct attention_slopes *a, const struct slope_buffers *b)
{
    double sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        b->slopes[j] = dot(a->value_size, b->dy, b->v + j * a->value_size);
        sum += b->slopes[j] * b->weights[j];
    }
    for (int64_t d = 0; d < a->size; d++)
        b->dq[d] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        b->slopes[j] = b->weights[j] * (b->slopes[j] - sum);
        add_scaled(a->value_size, b->weights[j], b->dy, b->dv + j * a->value_size);
        add_scaled(a->size, a->scale * b->slopes[j], b->k + j * a->size, b->dq);
        add_scaled(a->size, a->scale * b->slopes[j], b->q, b->dk + j * a->size);
    }
}

static void turn_head(const struct cm_call *call, const struct attention_slopes *a,
                      const struct slope_buffers *b, int64_t head)
{
    const int64_t of_keys = a->keys * a->size, of_values = a->keys * a->value_size;
    struct cm_tensor *d_mask = mask_slopes(call);
    cm_line_load(cm_line_at(call->in[K], head * of_keys), 1, of_keys, CM_DOUBLE, b->k);
    cm_line_load(cm_line_at(call->in[V], head * of_values), 1, of_values, CM_DOUBLE, b->v);
    for (int64_t i = 0; i < of_keys + of_values; i++)
        b->dk[i] = 0; /* and dv after it */
    for (int64_t query = 0; query < a->queries; query++) {
        const int64_t row = head * a->queries + query;
        const int64_t mask_at = head / a->heads_of_batch * a->mask_strides[0] +
                                head % a->heads_of_batch * a->mask_strides[1] +
                                query * a->mask_strides[2];
        cm_line_load(cm_line_at(call->in[Q], row * a->size), 1, a->size, CM_DOUBLE, b->q);
        cm_line_load(cm_line_at(call->in[DY], row * a->value_size), 1, a->value_size, CM_DOUBLE,
                     b->dy);
        fill_bias(call, a, query, mask_at, b->bias);
        weigh(a, b);
        turn_query(a, b);
        if (call->out[D_Q])
            cm_line_save(cm_line_at(call->out[D_Q], row * a->size), 1, a->size, CM_DOUBLE, b->dq);
        for (int64_t j = 0; d_mask && j < a->keys; j++)
            cm_line_store(cm_line_at(d_mask, mask_at + j),
                          cm_tensor_real(d_mask, mask_at + j) + b->slopes[j]);
    }
    if (call->out[D_K])
        cm_line_save(cm_line_at(call->out[D_K], head * of_keys), 1, of_keys, CM_DOUBLE, b->dk);
    if (call->out[D_V])
        cm_line_save(cm_line_at(call->out[D_V], head * of_values), 1, of_values, CM_DOUBLE, b->dv);
}

static void turn_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct attention_slopes *a = call->state;
    for (int64_t part = begin; part < end; part++) {
        const struct slope_buffers b =
            buffers_at(a, (double *)call->scratch + part * a->part_doubles);
        const int64_t first = part * a->heads_of_part, next = first + a->heads_of_part;
        for (int64_t head = first; head < next && head < a->heads; head++)
            turn_head(call, a, &b, head);
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct attention_slopes *a = call->state;
    struct cm_tensor *d_mask = mask_slopes(call);
    for (int64_t i = 0; d_mask && i < cm_tensor_count(d_mask); i++)
        cm_line_store(cm_line_at(d_mask, i), 0);
    cm_parallel(a->parts, 1, turn_parts, call);
    return CM_OK;
}

CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", AttentionGrad, .label = "attention gradient of doubles",
                .accepts = accepts, .prepare = prepare, .run = run);
