/* AttentionGrad: the gradients of Attention by queries, keys, values and an added mask, for heads
 * on an axis of their own, as many of keys as of queries. The weights are computed again rather
 * than kept: there is one for each pair of places. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/attention/attention.h"

#include "base/number.h"

#include <math.h>

enum { DY, Q, K, V, MASK };          /* operands */
enum { D_Q, D_K, D_V, D_MASK };      /* results */
enum { BATCH, HEADS, PLACES, SIZE }; /* axes */

/* Does the mask lie over (batch, heads, queries, keys), each of its axes whole or 1? */
static bool mask_fits(const struct cm_type *mask, const struct cm_type *q, const struct cm_type *k)
{
    const struct cm_dim whole[] = {q->dims[BATCH], q->dims[HEADS], q->dims[PLACES],
                                   k->dims[PLACES]};
    if (mask->rank < 1 || mask->rank > 4 || !cm_dim_same(mask->dims[mask->rank - 1], whole[3]))
        return false; /* a shorter last axis means something else */
    for (int d = 0; d + 1 < mask->rank; d++)
        if (mask->dims[d].value != 1 && !cm_dim_same(mask->dims[d], whole[4 - mask->rank + d]))
            return false;
    return true;
}

static enum cm_status grad_infer(struct cm_infer *in)
{
    const struct cm_type *mask = cm_infer_type(in, MASK);
    for (int i = DY; i <= V; i++)
        CM_TRY(cm_infer_rank(in, i, 4, 4));
    CM_TRY(cm_infer_rank(in, MASK, 1, 4));
    if (in->n_out > D_MASK && (!mask || mask->dtype != cm_infer_type(in, Q)->dtype))
        return cm_infer_fail(
            in, "the gradient of the mask is wanted, but there is no mask of the type of Q");
    for (int o = D_Q; o <= D_V; o++)
        CM_TRY(cm_infer_set(in, o, cm_infer_type(in, Q + o - D_Q)));
    return in->n_out > D_MASK ? cm_infer_set(in, D_MASK, mask) : CM_OK;
}

/* ---- Running, in double, one query after the other ---- */

struct attention_slopes {
    int64_t heads, queries, keys, size, value_size; /* heads of all batches */
    int64_t heads_of_batch;
    int64_t mask_strides[3]; /* of batch, head, query */
    double scale;
    bool causal;
};

/* Scratch memory, for the head at hand. */
struct slope_sums {
    double *weights, *slopes; /* per key, of one query */
    double *dq;               /* of one query */
    double *dk, *dv;          /* per key */
};

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

static enum cm_status plan_mask(struct cm_call *call, struct attention_slopes *a)
{
    const struct cm_tensor *mask = mask_of(call);
    const int64_t *q = call->in[Q]->shape.dims;
    const int64_t whole[] = {q[BATCH], q[HEADS], q[PLACES]};
    int64_t stride = 1;
    if (!mask)
        return CM_OK;
    const int rank = mask->shape.rank;
    bool fits = rank >= 1 && rank <= 4 && mask->shape.dims[rank - 1] == a->keys;
    for (int d = 0; fits && d + 1 < rank; d++)
        fits = mask->shape.dims[d] == 1 || mask->shape.dims[d] == whole[4 - rank + d];
    if (!fits)
        return cm_call_fail(call, CM_BAD_MODEL, "its mask does not broadcast to queries and keys");
    for (int i = rank - 2, axis = 2; i >= 0; i--, axis--) {
        stride *= mask->shape.dims[i + 1];
        a->mask_strides[axis] = mask->shape.dims[i] == 1 ? 0 : stride;
    }
    return CM_OK;
}

static enum cm_status grad_prepare(struct cm_call *call)
{
    struct attention_slopes *a = cm_call_state(call, sizeof *a);
    const int64_t *q = call->in[Q]->shape.dims, *v = call->in[V]->shape.dims;
    int64_t doubles;
    size_t bytes;
    for (int i = DY; i <= V; i++)
        if (call->in[i]->shape.rank != 4)
            return cm_call_fail(call, CM_BAD_MODEL, "operand %d has rank %d, needs 4", i,
                                call->in[i]->shape.rank);
    a->heads_of_batch = q[HEADS];
    a->heads = q[BATCH] * q[HEADS];
    a->queries = q[PLACES];
    a->size = q[SIZE];
    a->keys = v[PLACES];
    a->value_size = v[SIZE];
    if (!shape_is(call->in[K], q[BATCH], q[HEADS], a->keys, a->size) ||
        !shape_is(call->in[V], q[BATCH], q[HEADS], a->keys, a->value_size) ||
        !shape_is(call->in[DY], q[BATCH], q[HEADS], a->queries, a->value_size))
        return cm_call_fail(call, CM_BAD_MODEL, "the shapes of its operands do not match");
    CM_TRY(plan_mask(call, a));
    a->causal = cm_node_int(call->node, "is_causal") != 0;
    a->scale = cm_node_has_attr(call->node, "scale") ? (double)cm_node_float(call->node, "scale")
                                                     : 1 / sqrt((double)a->size);
    if (!cm_dim_add(a->size, a->value_size, &doubles) || !cm_dim_add(doubles, 2, &doubles) ||
        !cm_dim_mul(doubles, a->keys, &doubles) || !cm_dim_add(doubles, a->size, &doubles) ||
        !cm_dtype_bytes(CM_DOUBLE, doubles, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Row i of x times row j of y, both of n elements. */
static double dot(const struct cm_tensor *x, int64_t i, const struct cm_tensor *y, int64_t j,
                  int64_t n)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum += cm_tensor_real(x, i * n + d) * cm_tensor_real(y, j * n + d);
    return sum;
}

/* What is added to the score of a query and a key of its head. */
static double bias_of(const struct cm_call *call, int64_t query, int64_t key, int64_t mask_at)
{
    const struct attention_slopes *a = call->state;
    const struct cm_tensor *mask = mask_of(call);
    const double bias = a->causal && key > query ? (double)-INFINITY : 0;
    if (mask && mask->type == CM_BOOL)
        return cm_tensor_int(mask, mask_at + key) ? bias : (double)-INFINITY;
    return mask ? bias + cm_tensor_real(mask, mask_at + key) : bias;
}

/* Weights: the softmax of the scores of a query. One that may see no key has weights of 0. */
static void weigh(const struct cm_call *call, int64_t head, int64_t query, int64_t mask_at,
                  double *weights)
{
    const struct attention_slopes *a = call->state;
    double most = (double)-INFINITY, sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        weights[j] = a->scale * dot(call->in[Q], head * a->queries + query, call->in[K],
                                    head * a->keys + j, a->size) +
                     bias_of(call, query, j, mask_at);
        most = weights[j] > most ? weights[j] : most;
    }
    for (int64_t j = 0; j < a->keys; j++) {
        if (most > (double)-INFINITY)
            weights[j] = exp(weights[j] - most);
        else
            weights[j] = weights[j] == weights[j] ? 0 : weights[j];
        sum += weights[j];
    }
    for (int64_t j = 0; j < a->keys && sum != 0; j++)
        weights[j] /= sum;
}

/* With weights p: dv = p' dy, ds = p * (dp - sum(dp * p)) with dp = dy v', dq = scale * ds k,
 * dk = scale * ds' q; ds is the mask's. */
static void turn_query(const struct cm_call *call, int64_t head, int64_t query,
                       const struct slope_sums *s)
{
    const struct attention_slopes *a = call->state;
    const int64_t row = head * a->queries + query, first = head * a->keys;
    double sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        s->slopes[j] = dot(call->in[DY], row, call->in[V], first + j, a->value_size);
        sum += s->slopes[j] * s->weights[j];
    }
    for (int64_t d = 0; d < a->size; d++)
        s->dq[d] = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        s->slopes[j] = s->weights[j] * (s->slopes[j] - sum);
        for (int64_t d = 0; d < a->value_size; d++)
            s->dv[j * a->value_size + d] +=
                s->weights[j] * cm_tensor_real(call->in[DY], row * a->value_size + d);
        for (int64_t d = 0; d < a->size; d++) {
            const double slope = a->scale * s->slopes[j];
            s->dq[d] += slope * cm_tensor_real(call->in[K], (first + j) * a->size + d);
            s->dk[j * a->size + d] += slope * cm_tensor_real(call->in[Q], row * a->size + d);
        }
    }
}

static void store(const struct cm_call *call, int o, int64_t at, int64_t count, const double *from)
{
    for (int64_t i = 0; call->out[o] && i < count; i++)
        cm_tensor_set_real(call->out[o], at + i, from[i]);
}

static void turn_head(const struct cm_call *call, int64_t head, const struct slope_sums *s)
{
    const struct attention_slopes *a = call->state;
    struct cm_tensor *d_mask = mask_slopes(call);
    for (int64_t i = 0; i < a->keys * (a->size + a->value_size); i++)
        s->dk[i] = 0; /* and dv after it */
    for (int64_t query = 0; query < a->queries; query++) {
        const int64_t mask_at = head / a->heads_of_batch * a->mask_strides[0] +
                                head % a->heads_of_batch * a->mask_strides[1] +
                                query * a->mask_strides[2];
        weigh(call, head, query, mask_at, s->weights);
        turn_query(call, head, query, s);
        store(call, D_Q, (head * a->queries + query) * a->size, a->size, s->dq);
        for (int64_t j = 0; d_mask && j < a->keys; j++)
            cm_tensor_set_real(d_mask, mask_at + j,
                               cm_tensor_real(d_mask, mask_at + j) + s->slopes[j]);
    }
    store(call, D_K, head * a->keys * a->size, a->keys * a->size, s->dk);
    store(call, D_V, head * a->keys * a->value_size, a->keys * a->value_size, s->dv);
}

static enum cm_status grad_run(struct cm_call *call)
{
    const struct attention_slopes *a = call->state;
    struct cm_tensor *d_mask = mask_slopes(call);
    struct slope_sums s = {.weights = call->scratch};
    s.slopes = s.weights + a->keys;
    s.dq = s.slopes + a->keys;
    s.dk = s.dq + a->size;
    s.dv = s.dk + a->keys * a->size;
    for (int64_t i = 0; d_mask && i < cm_tensor_count(d_mask); i++)
        cm_tensor_set_real(d_mask, i, 0);
    for (int64_t head = 0; head < a->heads; head++)
        turn_head(call, head, &s);
    return CM_OK;
}

/* ---- As nodes ---- */

/* The scale, as an expression. */
static const char *scale_text(struct cm_body *b)
{
    const struct cm_type *q = cm_builder_type(&b->build, cm_body_input(b, Q));
    if (cm_node_has_attr(b->node, "scale"))
        return "like(Q, scale)";
    if (!cm_dim_known(q->dims[SIZE]))
        return "Reciprocal(Sqrt(cast(Squeeze(Shape<start=3>(Q)), Q)))";
    return cm_str_text(cm_arena_printf(cm_builder_arena(&b->build), "like(Q, %.17g)",
                                       1 / sqrt((double)q->dims[SIZE].value)));
}

/* What is added to the scores, as statements: the mask, and what keeps queries from later keys. */
static const char *bias_text(struct cm_body *b)
{
    const cm_value mask = cm_body_input(b, MASK);
    const bool causal = cm_node_int(b->node, "is_causal") != 0;
    const char *const given = !mask ? ""
                              : cm_builder_type(&b->build, mask)->dtype == CM_BOOL
                                  ? "mask = Where(attn_mask, like(Q, 0), like(Q, -inf));"
                                  : "mask = attn_mask;";
    const char *const all =
        !causal ? (mask ? "bias = mask;" : "")
                : "shape = Shape<start=2>(scores);"
                  "causal = Trilu<upper=1>(Expand(like(Q, -inf), shape), int64(1));";
    return cm_str_text(cm_arena_printf(cm_builder_arena(&b->build), "%s %s %s", given, all,
                                       !causal ? ""
                                       : mask  ? "bias = causal + mask;"
                                               : "bias = causal;"));
}

/* The gradient of the mask, summed over the axes that it does not have, or has once: which, its
 * shape tells. */
static const char *mask_text(struct cm_body *b)
{
    if (!cm_body_wants(b, D_MASK))
        return "";
    const int missing = 4 - cm_builder_type(&b->build, cm_body_input(b, MASK))->rank;
    return cm_str_text(cm_arena_printf(
        cm_builder_arena(&b->build),
        "like_mask = Shape(attn_mask); whole = %s;"
        "axes = Reshape(NonZero(Equal(whole, [1])), [-1]);"
        "dMask = Reshape<allowzero=1>(ReduceSum<noop_with_empty_axes=1>(slopes, axes), like_mask)",
        missing == 0   ? "like_mask"
        : missing == 1 ? "Concat<axis=0>([1], like_mask)"
        : missing == 2 ? "Concat<axis=0>([1, 1], like_mask)"
                       : "Concat<axis=0>([1, 1, 1], like_mask)"));
}

static enum cm_status grad_body(struct cm_body *b)
{
    for (int i = Q; i <= MASK; i++)
        if (cm_body_input(b, i) &&
            cm_builder_type(&b->build, cm_body_input(b, i))->rank == CM_RANK_UNKNOWN)
            return cm_body_decline(b, "the rank of operand %d is not known", i);
    /* Rows that may see nothing have weights of 0; these take part as zeros, so that no NaN comes
     * up on the way there or back. */
    const char *const weights =
        cm_body_input(b, MASK) || cm_node_int(b->node, "is_causal")
            ? "zero = like(Q, 0); never = like(Q, -inf);"
              "count = ReduceSum(float(Greater(bias, never)), [-1]); blind = Equal(count, 0);"
              "seen = Where(blind, zero, scores + bias);"
              "weights = Where(blind, zero, Softmax<axis=-1>(seen));"
            : "weights = Softmax<axis=-1>(scores);";
    return cm_body_formula(
        b,
        "t(x) = Transpose<perm=[0, 1, 3, 2]>(x); scale = %s; scores = MatMul(Q, t(K)) * scale; %s "
        "%s"
        "d_weights = MatMul(dY, t(V)); sum = ReduceSum(d_weights * weights, [-1]);"
        "slopes = weights * (d_weights - sum); scaled = slopes * scale; dQ = MatMul(scaled, K);"
        "dK = MatMul(t(scaled), Q); dV = MatMul(t(weights), dY); %s",
        scale_text(b), bias_text(b), weights, mask_text(b));
}

/* Five products: the scores again, and one for each of dP, dQ, dK, dV. */
static double grad_flops(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                         const struct cm_tensor *const *out, int n_out)
{
    const struct cm_shape *keys = &in[2]->shape;
    (void)node, (void)n_in, (void)out, (void)n_out;
    return keys->rank < 3
               ? 0
               : 2.0 * (double)keys->dims[keys->rank - 2] *
                     (3 * (double)cm_tensor_count(in[1]) + 2 * (double)cm_tensor_count(in[0]));
}

CM_OP_IN(cameo, "ai.cameo", AttentionGrad, .infer = grad_infer, .prepare = grad_prepare,
         .run = grad_run, .body = grad_body, .cost.flops = grad_flops);

/* ---- The rule of Attention ---- */

static const struct cm_type *input_type(const struct cm_node *node, int i)
{
    const cm_value value = cm_node_input(node, i);
    return value ? cm_value_get(node->module, value)->fact.type : NULL;
}

static bool types_fit(const struct cm_node *node)
{
    const struct cm_type *q = input_type(node, CM_ATTENTION_QUERY),
                         *k = input_type(node, CM_ATTENTION_KEY),
                         *v = input_type(node, CM_ATTENTION_VALUE),
                         *mask = input_type(node, CM_ATTENTION_MASK);
    const enum cm_dtype dtype = q->dtype;
    if ((dtype != CM_FLOAT && dtype != CM_DOUBLE) || k->dtype != dtype || v->dtype != dtype ||
        q->rank != 4 || k->rank != 4 || v->rank != 4 ||
        !cm_dim_same(q->dims[HEADS], k->dims[HEADS]))
        return false;
    return !mask || ((mask->dtype == dtype || mask->dtype == CM_BOOL) && mask_fits(mask, q, k));
}

bool cm_attention_grad_fits(const struct cm_node *node)
{
    for (int i = CM_ATTENTION_PAST_KEY; i <= CM_ATTENTION_NONPAD; i++)
        if (cm_node_input(node, i))
            return false;
    for (int o = CM_ATTENTION_PRESENT_KEY; o <= CM_ATTENTION_SCORES; o++)
        if (cm_node_output(node, o))
            return false;
    return types_fit(node) && cm_node_float(node, "softcap") == 0 &&
           cm_node_int(node, "left_window_size") < 0 &&
           cm_node_int(node, "right_window_size") < 0 &&
           (!cm_node_has_attr(node, "softmax_precision") ||
            cm_node_int(node, "softmax_precision") ==
                (int64_t)input_type(node, CM_ATTENTION_QUERY)->dtype);
}

enum cm_status cm_attention_grad(struct cm_grad *g)
{
    return cm_grad_formula(
        g, cm_grad_wants(g, CM_ATTENTION_MASK)
               ? "dQ, dK, dV, d_attn_mask ="
                 "  ai.cameo::AttentionGrad<is_causal, scale>(dY, Q, K, V, attn_mask)"
               : "dQ, dK, dV = ai.cameo::AttentionGrad<is_causal, scale>(dY, Q, K, V, attn_mask)");
}
