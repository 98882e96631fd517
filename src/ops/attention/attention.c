/* Attention: softmax(Q K' * scale + bias) V for every head. Computed in float, or in double for
 * double operands, a few queries at a time; what is narrow is converted going in and out. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include "base/number.h"
#include "graph/require.h"
#include "ops/attention/heads.h"
#include "ops/common/gemm.h"
#include "tensor/line.h"

#include <math.h>

/* What output SCORES shows. */
enum mode { AS_MULTIPLIED, AS_CAPPED, AS_BIASED, AS_SOFTMAX };

/* The operands' sizes as far as they are known. */
struct facts {
    struct cm_heads_type query, key, value;
    struct cm_dim past, total; /* keys of the past, and of past and present */
};

static enum cm_status check_attributes(struct cm_infer *in)
{
    const struct cm_node *node = in->node;
    const int64_t mode = cm_node_int(node, "qk_matmul_output_mode");
    const int64_t precision = cm_node_int(node, "softmax_precision");
    if (cm_node_int(node, "left_window_size") < -1 || cm_node_int(node, "right_window_size") < -1)
        return cm_infer_fail(
            in,
            "attribute 'left_window_size' or 'right_window_size' is below -1, expected -1 or more");
    if (mode < AS_MULTIPLIED || mode > AS_SOFTMAX)
        return cm_infer_fail(in, "attribute 'qk_matmul_output_mode' is %lld, expected 0 to 3",
                             (long long)mode);
    if (cm_node_has_attr(node, "softmax_precision") && precision != CM_FLOAT &&
        precision != CM_FLOAT16 && precision != CM_DOUBLE && precision != CM_BFLOAT16)
        return cm_infer_fail(in, "attribute 'softmax_precision' is %lld, which is not a float type",
                             (long long)precision);
    if (!cm_infer_type(in, CM_ATTENTION_PAST_KEY) != !cm_infer_type(in, CM_ATTENTION_PAST_VALUE))
        return cm_infer_fail(
            in, "only one of past_key and past_value is present, expected both or neither");
    if (cm_infer_type(in, CM_ATTENTION_PAST_KEY) && cm_infer_type(in, CM_ATTENTION_NONPAD))
        return cm_infer_fail(
            in, "nonpad_kv_seqlen and past_key are both present, expected at most one");
    return CM_OK;
}

static enum cm_status read_facts(struct cm_infer *in, struct facts *f)
{
    const struct cm_node *node = in->node;
    CM_TRY(cm_heads_read(in, CM_ATTENTION_QUERY, cm_node_int(node, "q_num_heads"), &f->query));
    CM_TRY(cm_heads_read(in, CM_ATTENTION_KEY, cm_node_int(node, "kv_num_heads"), &f->key));
    CM_TRY(cm_heads_read(in, CM_ATTENTION_VALUE, cm_node_int(node, "kv_num_heads"), &f->value));
    CM_TRY(cm_heads_unify(in, f->query.batch, f->key.batch, "batches"));
    CM_TRY(cm_heads_unify(in, f->key.batch, f->value.batch, "batches"));
    CM_TRY(cm_heads_unify(in, f->key.heads, f->value.heads, "heads of keys and values"));
    CM_TRY(cm_heads_unify(in, f->key.length, f->value.length, "lengths of keys and values"));
    CM_TRY(cm_heads_unify(in, f->query.size, f->key.size, "head sizes of queries and keys"));
    if (cm_dim_known(f->query.heads) && cm_dim_known(f->key.heads) &&
        (f->key.heads.value < 1 || f->query.heads.value % f->key.heads.value != 0))
        return cm_infer_fail(in, "%lld heads of keys do not divide %lld heads of queries",
                             (long long)f->key.heads.value, (long long)f->query.heads.value);
    f->past = CM_DIM(0);
    if (cm_infer_type(in, CM_ATTENTION_PAST_KEY)) {
        struct cm_heads_type past_key, past_value;
        CM_TRY(cm_heads_read(in, CM_ATTENTION_PAST_KEY, 0, &past_key));
        CM_TRY(cm_heads_read(in, CM_ATTENTION_PAST_VALUE, 0, &past_value));
        CM_TRY(cm_heads_unify(in, past_key.length, past_value.length, "lengths of the past"));
        CM_TRY(cm_heads_unify(in, past_key.batch, f->key.batch, "batches"));
        CM_TRY(cm_heads_unify(in, past_value.batch, f->key.batch, "batches"));
        CM_TRY(cm_heads_unify(in, past_key.heads, f->key.heads, "heads of keys"));
        CM_TRY(cm_heads_unify(in, past_value.heads, f->key.heads, "heads of values"));
        CM_TRY(cm_heads_unify(in, past_key.size, f->key.size, "head sizes of keys"));
        CM_TRY(cm_heads_unify(in, past_value.size, f->value.size, "head sizes of values"));
        f->past = past_key.length;
    }
    f->total = cm_dim_sum(in->symbols, f->past, f->key.length);
    return CM_OK;
}

/* The mask broadcasts to (batch, heads, queries, keys); its last axis may be shorter. */
static enum cm_status check_mask(struct cm_infer *in, const struct facts *f)
{
    const struct cm_type *mask = cm_infer_type(in, CM_ATTENTION_MASK);
    const struct cm_dim whole[] = {f->query.batch, f->query.heads, f->query.length};
    if (!mask || mask->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, CM_ATTENTION_MASK, 1, 4));
    const struct cm_dim last = mask->dims[mask->rank - 1];
    if (cm_dim_known(last) && cm_dim_known(f->total) && last.value > f->total.value)
        return cm_infer_fail(in, "the mask has %lld keys, there are %lld", (long long)last.value,
                             (long long)f->total.value);
    for (int i = 0; i + 1 < mask->rank; i++) {
        const struct cm_dim have = mask->dims[i], need = whole[4 - mask->rank + i];
        if (cm_dim_known(have) && cm_dim_known(need) && have.value != 1 && have.value != need.value)
            return cm_infer_fail(in, "axis %d of the mask has %lld, needs 1 or %lld", i,
                                 (long long)have.value, (long long)need.value);
    }
    return CM_OK;
}

static enum cm_status attention_infer(struct cm_infer *in)
{
    const struct cm_type *q = cm_infer_type(in, CM_ATTENTION_QUERY),
                         *v = cm_infer_type(in, CM_ATTENTION_VALUE);
    const struct cm_type *nonpad = cm_infer_type(in, CM_ATTENTION_NONPAD);
    struct facts f;
    CM_TRY(check_attributes(in));
    CM_TRY(read_facts(in, &f));
    CM_TRY(check_mask(in, &f));
    if (nonpad && nonpad->rank == 1)
        CM_TRY(cm_heads_unify(in, nonpad->dims[0], f.query.batch, "batches"));
    const struct cm_dim b = f.query.batch, h = f.query.heads, kv = f.key.heads, n = f.query.length;
    const struct cm_dim four[] = {b, h, n, f.value.size};
    const struct cm_dim three[] = {b, n, cm_dim_product(in->symbols, h, f.value.size)};
    if (q->rank == CM_RANK_UNKNOWN)
        CM_TRY(cm_infer_set_tensor(in, CM_ATTENTION_RESULT, q->dtype, CM_RANK_UNKNOWN, NULL));
    else
        CM_TRY(cm_infer_set_tensor(in, CM_ATTENTION_RESULT, q->dtype, q->rank,
                                   q->rank == 4 ? four : three));
    CM_TRY(cm_infer_set_tensor(in, CM_ATTENTION_PRESENT_KEY, q->dtype, 4,
                               (const struct cm_dim[]){b, kv, f.total, f.key.size}));
    CM_TRY(cm_infer_set_tensor(in, CM_ATTENTION_PRESENT_VALUE, v->dtype, 4,
                               (const struct cm_dim[]){b, kv, f.total, f.value.size}));
    return cm_infer_set_tensor(in, CM_ATTENTION_SCORES, q->dtype, 4,
                               (const struct cm_dim[]){b, h, n, f.total});
}

enum { BLOCK = 64 }; /* queries at a time */

struct attention {
    struct cm_heads query, key, value, result, past_key, past_value;
    int64_t past, total;
    enum cm_dtype wide;
    double scale, softcap;
    bool causal;
    int64_t left, right; /* -1: no bound */
    enum mode mode;
    int64_t mask_strides[3], mask_keys; /* of batch, head, query */
    /* Parts of scratch, in bytes: queries, keys, values, scores, results; biases are doubles. */
    size_t q, k, v, s, y, bias;
};

static const struct cm_tensor *input(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static struct cm_tensor *output(const struct cm_call *call, int o)
{
    return o < call->n_out ? call->out[o] : NULL;
}

static bool reserve(int64_t rows, int64_t columns, size_t *end, size_t *at)
{
    int64_t count;
    size_t bytes;
    *at = *end;
    return cm_dim_mul(rows, columns, &count) && cm_dtype_bytes(CM_DOUBLE, count, &bytes) &&
           bytes < SIZE_MAX / 2 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
}

static void plan_mask(const struct cm_call *call, struct attention *a)
{
    const struct cm_tensor *mask = input(call, CM_ATTENTION_MASK);
    if (!mask)
        return;
    int64_t stride = 1;
    a->mask_keys = mask->shape.dims[mask->shape.rank - 1];
    for (int i = mask->shape.rank - 2, axis = 2; i >= 0 && axis >= 0; i--, axis--) {
        stride *= mask->shape.dims[i + 1];
        a->mask_strides[axis] = mask->shape.dims[i] == 1 ? 0 : stride;
    }
}

static enum cm_status attention_prepare(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    struct attention *a = cm_call_state(call, sizeof *a);
    const int64_t q_heads = cm_node_int(node, "q_num_heads");
    const int64_t kv_heads = cm_node_int(node, "kv_num_heads");
    a->query = cm_heads_of(&call->in[CM_ATTENTION_QUERY]->shape, q_heads);
    a->key = cm_heads_of(&call->in[CM_ATTENTION_KEY]->shape, kv_heads);
    a->value = cm_heads_of(&call->in[CM_ATTENTION_VALUE]->shape, kv_heads);
    a->result = cm_heads_of(&call->out[CM_ATTENTION_RESULT]->shape, q_heads);
    if (input(call, CM_ATTENTION_PAST_KEY)) {
        a->past_key = cm_heads_of(&call->in[CM_ATTENTION_PAST_KEY]->shape, 0);
        a->past_value = cm_heads_of(&call->in[CM_ATTENTION_PAST_VALUE]->shape, 0);
        a->past = a->past_key.length;
    }
    if (!cm_dim_add(a->past, a->key.length, &a->total))
        return cm_call_fail(call, CM_LIMIT, "it has too many keys");
    a->wide = cm_line_wide(call->in[CM_ATTENTION_QUERY]->type);
    a->scale = cm_node_has_attr(node, "scale") ? (double)cm_node_float(node, "scale")
                                               : 1 / sqrt((double)a->query.size);
    a->softcap = (double)cm_node_float(node, "softcap");
    a->causal = cm_node_int(node, "is_causal") != 0;
    a->left = cm_node_int(node, "left_window_size");
    a->right = cm_node_int(node, "right_window_size");
    a->mode = (enum mode)cm_node_int(node, "qk_matmul_output_mode");
    plan_mask(call, a);

    const size_t first = cm_gemm_scratch(a->wide, BLOCK, a->total, a->query.size);
    const size_t second = cm_gemm_scratch(a->wide, BLOCK, a->value.size, a->total);
    size_t end = cm_round_up(first > second ? first : second, CM_TENSOR_ALIGNMENT);
    if (!reserve(BLOCK, a->query.size, &end, &a->q) ||
        !reserve(a->total, a->key.size, &end, &a->k) ||
        !reserve(a->total, a->value.size, &end, &a->v) || !reserve(BLOCK, a->total, &end, &a->s) ||
        !reserve(BLOCK, a->value.size, &end, &a->y) || !reserve(1, a->total, &end, &a->bias))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, end);
    return CM_OK;
}

/* Past and present rows of one head, one after the other. */
static void load_rows(const struct attention *a, const struct cm_tensor *past,
                      const struct cm_heads *past_heads, const struct cm_tensor *now,
                      const struct cm_heads *heads, int64_t batch, int64_t head, char *to)
{
    const size_t row = (size_t)heads->size * cm_dtype_size(a->wide);
    for (int64_t i = 0; i < a->past; i++, to += row)
        cm_line_load(cm_line_at(past, cm_heads_row(past_heads, batch, head, i)), 1, heads->size,
                     a->wide, to);
    for (int64_t i = 0; i < heads->length; i++, to += row)
        cm_line_load(cm_line_at(now, cm_heads_row(heads, batch, head, i)), 1, heads->size, a->wide,
                     to);
}

/* Which keys a query may look at, and what is added to their scores. True when it may look at none.
 */
static bool fill_bias(const struct cm_call *call, const struct attention *a, int64_t batch,
                      int64_t head, int64_t query, double *bias)
{
    const struct cm_tensor *mask = input(call, CM_ATTENTION_MASK),
                           *nonpad = input(call, CM_ATTENTION_NONPAD);
    const int64_t valid = nonpad ? cm_tensor_int(nonpad, batch) : a->total;
    const int64_t offset = nonpad ? valid - a->query.length : a->past;
    const int64_t place = query + offset;
    const int64_t at =
        batch * a->mask_strides[0] + head * a->mask_strides[1] + query * a->mask_strides[2];
    bool none = true;
    for (int64_t j = 0; j < a->total; j++) {
        const bool seen = j < valid && (!a->causal || j <= place) &&
                          (a->left < 0 || place - j <= a->left) &&
                          (a->right < 0 || j - place <= a->right) && (!mask || j < a->mask_keys);
        double value = 0;
        if (seen && mask && mask->type == CM_BOOL)
            value = ((const uint8_t *)mask->data)[at + j] ? 0 : (double)-INFINITY;
        else if (seen && mask)
            value = cm_tensor_real(mask, at + j);
        bias[j] = seen ? value : (double)-INFINITY;
        none = none && bias[j] == (double)-INFINITY;
    }
    return none;
}

/* One row of scores, from the product to the weights of the values, in float or double. */
struct row {
    int64_t count;
    double softcap;
    const double *bias;
    bool masked; /* all of it */
};

#define T         float
#define EXP       expf
#define TANH      tanhf
#define FOR(name) float_##name
#include "ops/attention/score_row.inc"
#define T         double
#define EXP       exp
#define TANH      tanh
#define FOR(name) double_##name
#include "ops/attention/score_row.inc"

static void turn_row(const struct cm_call *call, const struct attention *a, const struct row *row,
                     void *s, int64_t scores_at)
{
    const bool in_double = a->wide == CM_DOUBLE;
    struct cm_tensor *shown = output(call, CM_ATTENTION_SCORES);
    for (enum mode stage = AS_MULTIPLIED; stage <= AS_SOFTMAX; stage++) {
        if (stage == AS_CAPPED && row->softcap > 0) {
            if (in_double)
                double_cap(row, s);
            else
                float_cap(row, s);
        } else if (stage == AS_BIASED) {
            if (in_double)
                double_add_bias(row, s);
            else
                float_add_bias(row, s);
        } else if (stage == AS_SOFTMAX) {
            if (in_double)
                double_soften(row, s);
            else
                float_soften(row, s);
        }
        if (shown && stage == a->mode)
            cm_line_save(cm_line_at(shown, scores_at), 1, row->count, a->wide, s);
    }
}

/* Queries [first, first + n) of one head. */
static void attend(const struct cm_call *call, const struct attention *a, int64_t batch,
                   int64_t head, int64_t first, int64_t n)
{
    char *scratch = call->scratch;
    const size_t size = cm_dtype_size(a->wide);
    double *bias = (double *)(void *)(scratch + a->bias);
    for (int64_t i = 0; i < n; i++)
        cm_line_load(cm_line_at(call->in[CM_ATTENTION_QUERY],
                                cm_heads_row(&a->query, batch, head, first + i)),
                     1, a->query.size, a->wide,
                     scratch + a->q + (size_t)(i * a->query.size) * size);
    const struct cm_gemm product = {.type = a->wide,
                                    .m = n,
                                    .n = a->total,
                                    .k = a->query.size,
                                    .a = {scratch + a->q, 0, a->query.size, 1},
                                    .b = {scratch + a->k, 0, 1, a->query.size},
                                    .alpha = a->scale,
                                    .c = scratch + a->s,
                                    .c_row = a->total,
                                    .c_column = 1};
    cm_gemm(&product, scratch);
    for (int64_t i = 0; i < n; i++) {
        const struct row row = {.count = a->total,
                                .softcap = a->softcap,
                                .bias = bias,
                                .masked = fill_bias(call, a, batch, head, first + i, bias)};
        turn_row(call, a, &row, scratch + a->s + (size_t)(i * a->total) * size,
                 ((batch * a->query.heads + head) * a->query.length + first + i) * a->total);
    }
    const struct cm_gemm result = {.type = a->wide,
                                   .m = n,
                                   .n = a->value.size,
                                   .k = a->total,
                                   .a = {scratch + a->s, 0, a->total, 1},
                                   .b = {scratch + a->v, 0, a->value.size, 1},
                                   .alpha = 1,
                                   .c = scratch + a->y,
                                   .c_row = a->value.size,
                                   .c_column = 1};
    cm_gemm(&result, scratch);
    for (int64_t i = 0; i < n; i++)
        cm_line_save(cm_line_at(call->out[CM_ATTENTION_RESULT],
                                cm_heads_row(&a->result, batch, head, first + i)),
                     1, a->value.size, a->wide,
                     scratch + a->y + (size_t)(i * a->value.size) * size);
}

static void store_present(const struct cm_call *call, const struct attention *a, int o,
                          int64_t batch, int64_t head, int64_t size, const char *rows)
{
    struct cm_tensor *present = output(call, o);
    if (present)
        cm_line_save(cm_line_at(present, (batch * a->key.heads + head) * a->total * size), 1,
                     a->total * size, a->wide, rows);
}

/* Lengths of the unpadded keys come from data. */
static enum cm_status check_lengths(struct cm_call *call, const struct attention *a)
{
    const struct cm_tensor *nonpad = input(call, CM_ATTENTION_NONPAD);
    for (int64_t i = 0; nonpad && i < a->query.batch; i++) {
        const int64_t length = cm_tensor_int(nonpad, i);
        if (length < 0 || length > a->total)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "nonpad_kv_seqlen has %lld, must be 0 to the %lld keys",
                                (long long)length, (long long)a->total);
    }
    return CM_OK;
}

static enum cm_status attention_run(struct cm_call *call)
{
    const struct attention *a = call->state;
    char *scratch = call->scratch;
    int64_t results = 0;
    for (int o = 0; o < call->n_out; o++)
        results += call->out[o] && cm_tensor_count(call->out[o]) > 0;
    if (results == 0)
        return CM_OK;
    CM_TRY(check_lengths(call, a));
    for (int64_t batch = 0; batch < a->query.batch; batch++) {
        for (int64_t kv = 0; kv < a->key.heads; kv++) {
            load_rows(a, input(call, CM_ATTENTION_PAST_KEY), &a->past_key,
                      call->in[CM_ATTENTION_KEY], &a->key, batch, kv, scratch + a->k);
            load_rows(a, input(call, CM_ATTENTION_PAST_VALUE), &a->past_value,
                      call->in[CM_ATTENTION_VALUE], &a->value, batch, kv, scratch + a->v);
            store_present(call, a, CM_ATTENTION_PRESENT_KEY, batch, kv, a->key.size,
                          scratch + a->k);
            store_present(call, a, CM_ATTENTION_PRESENT_VALUE, batch, kv, a->value.size,
                          scratch + a->v);
            const int64_t shared = a->query.heads / a->key.heads; /* heads that read these keys */
            for (int64_t head = kv * shared; head < (kv + 1) * shared; head++)
                for (int64_t i = 0; i < a->query.length; i += BLOCK)
                    attend(call, a, batch, head, i,
                           a->query.length - i < BLOCK ? a->query.length - i : BLOCK);
        }
    }
    return CM_OK;
}

/* Each query with each key, and each weight with each value. */
static double attention_flops(const struct cm_node *node, const struct cm_tensor *const *in,
                              int n_in, const struct cm_tensor *const *out, int n_out)
{
    enum { PAST_KEY = 4 };
    const struct cm_shape *keys = n_in > 1 && in[1] ? &in[1]->shape : NULL;
    const struct cm_tensor *past = n_in > PAST_KEY ? in[PAST_KEY] : NULL;
    (void)node;
    if (!in[0] || !keys || keys->rank < 3 || n_out < 1 || !out[0])
        return 0;
    const int64_t before = past && past->shape.rank == 4 ? past->shape.dims[2] : 0;
    return 2.0 * (double)(keys->dims[keys->rank - 2] + before) *
           ((double)cm_tensor_count(in[0]) + (double)cm_tensor_count(out[0]));
}

/* Pairs of axes that are equally long. Those of tensors of heads are (batch, heads, length, size).
 */
static const struct pair {
    int operand, axis, other, other_axis;
    bool of_heads; /* only where both have rank 4 */
    const char *reason;
} pairs[] = {
    {CM_ATTENTION_KEY, 0, CM_ATTENTION_QUERY, 0, false, "queries and keys differ in batch"},
    {CM_ATTENTION_VALUE, 0, CM_ATTENTION_QUERY, 0, false, "queries and values differ in batch"},
    {CM_ATTENTION_PAST_KEY, 0, CM_ATTENTION_QUERY, 0, false, "past keys differ in batch"},
    {CM_ATTENTION_PAST_VALUE, 0, CM_ATTENTION_QUERY, 0, false, "past values differ in batch"},
    {CM_ATTENTION_NONPAD, 0, CM_ATTENTION_QUERY, 0, false, "nonpad_kv_seqlen differs in batch"},
    {CM_ATTENTION_VALUE, -2, CM_ATTENTION_KEY, -2, false, "keys and values differ in length"},
    {CM_ATTENTION_PAST_VALUE, -2, CM_ATTENTION_PAST_KEY, -2, false, "pasts differ in length"},
    {CM_ATTENTION_VALUE, 1, CM_ATTENTION_KEY, 1, true, "keys and values differ in heads"},
    {CM_ATTENTION_KEY, 3, CM_ATTENTION_QUERY, 3, true, "queries and keys differ in head size"},
    {CM_ATTENTION_PAST_KEY, 1, CM_ATTENTION_KEY, 1, true, "past keys differ in heads"},
    {CM_ATTENTION_PAST_VALUE, 1, CM_ATTENTION_KEY, 1, true, "past values differ in heads"},
    {CM_ATTENTION_PAST_KEY, 3, CM_ATTENTION_KEY, 3, true, "past keys differ in head size"},
    {CM_ATTENTION_PAST_VALUE, 3, CM_ATTENTION_VALUE, 3, true, "past values differ in head size"},
};

static bool has_rank(const struct cm_require *r, int operand, int rank)
{
    const struct cm_type *type = cm_require_type(r, operand);
    return type && type->rank == rank;
}

/* Heads of queries are a multiple of those of keys. */
static void require_heads(struct cm_require *r)
{
    const struct cm_type *q = cm_require_type(r, CM_ATTENTION_QUERY);
    const struct cm_type *k = cm_require_type(r, CM_ATTENTION_KEY);
    const cm_value one = cm_emit_int64s(r, 1);
    if (!has_rank(r, CM_ATTENTION_QUERY, 4) || !has_rank(r, CM_ATTENTION_KEY, 4) ||
        (cm_dim_known(q->dims[1]) && cm_dim_known(k->dims[1])) ||
        (cm_dim_known(k->dims[1]) && k->dims[1].value == 1))
        return;
    const cm_value keys = cm_require_length(r, CM_ATTENTION_KEY, 1);
    const cm_value rest = cm_emit(r, "Mod", cm_require_length(r, CM_ATTENTION_QUERY, 1),
                                  cm_emit(r, "Max", keys, one));
    const cm_value met =
        cm_emit(r, "And", cm_emit(r, "Less", rest, one), cm_emit(r, "GreaterOrEqual", keys, one));
    cm_require_that(r, CM_ATTENTION_KEY, met, "heads of keys do not divide heads of queries");
}

static void require_mask(struct cm_require *r)
{
    const bool is_split = has_rank(r, CM_ATTENTION_QUERY, 4);
    const struct cm_type *mask = cm_require_type(r, CM_ATTENTION_MASK);
    const char *reason = "the mask does not broadcast to batches, heads and queries";
    if (!mask)
        return;
    if (mask->rank > 1)
        cm_require_spread(r, CM_ATTENTION_MASK, -2, CM_ATTENTION_QUERY, -2, reason);
    if (mask->rank > 2 && is_split)
        cm_require_spread(r, CM_ATTENTION_MASK, -3, CM_ATTENTION_QUERY, 1, reason);
    if (mask->rank > 3)
        cm_require_spread(r, CM_ATTENTION_MASK, -4, CM_ATTENTION_QUERY, 0, reason);
    cm_value keys = cm_require_length(r, CM_ATTENTION_KEY, -2);
    if (cm_require_type(r, CM_ATTENTION_PAST_KEY))
        keys = cm_emit(r, "Add", keys, cm_require_length(r, CM_ATTENTION_PAST_KEY, -2));
    const cm_value given = cm_require_length(r, CM_ATTENTION_MASK, -1);
    cm_require_that(r, CM_ATTENTION_MASK, cm_emit(r, "LessOrEqual", given, keys),
                    "the mask has more keys than there are");
}

static void require_lengths(struct cm_require *r)
{
    if (!cm_require_type(r, CM_ATTENTION_NONPAD))
        return;
    cm_require_least(r, CM_ATTENTION_NONPAD, 0, "nonpad_kv_seqlen is below 0");
    const cm_value most = cm_emit(r, "ReduceMax", r->in[CM_ATTENTION_NONPAD]);
    const cm_value keys = cm_require_length(r, CM_ATTENTION_KEY, -2);
    cm_require_that(r, CM_ATTENTION_NONPAD, cm_emit(r, "LessOrEqual", most, keys),
                    "nonpad_kv_seqlen is larger than the number of keys");
}

static void attention_require(struct cm_require *r)
{
    for (size_t i = 0; i < CM_COUNT(pairs); i++) {
        const struct pair *p = &pairs[i];
        if (!p->of_heads || (has_rank(r, p->operand, 4) && has_rank(r, p->other, 4)))
            cm_require_same(r, p->operand, p->axis, p->other, p->other_axis, p->reason);
    }
    require_heads(r);
    require_mask(r);
    require_lengths(r);
}

CM_OP(Attention, .infer = attention_infer, .prepare = attention_prepare, .run = attention_run,
      .cost.flops = attention_flops, .body = cm_attention_body, .require = attention_require,
      .grad = cm_attention_grad, .grad_fits = cm_attention_grad_fits);
