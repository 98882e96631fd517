/* LinearAttention: a state of keys by values for every head, carried from step to step, that
 * queries read. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/linear_attention.h"
#include "base/number.h"
#include "ops/attention/heads.h"
#include "tensor/line.h"

#include <math.h>

enum cm_status cm_linear_rule(const struct cm_node *node, struct cm_linear_rule *out,
                              struct cm_error *err)
{
    static const struct {
        const char *name;
        struct cm_linear_rule rule;
    } rules[] = {{"linear", {false, false}},
                 {"gated", {true, false}},
                 {"delta", {false, true}},
                 {"gated_delta", {true, true}}};
    const struct cm_str name = cm_node_str(node, "update_rule");
    for (size_t i = 0; i < CM_COUNT(rules); i++) {
        if (cm_str_is(name, rules[i].name)) {
            *out = rules[i].rule;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_BAD_MODEL,
                   "attribute 'update_rule' is '%.*s', which ONNX does not define",
                   CM_STR_FMT(name));
}

/* decay and beta: (batch, length, one of two widths). */
static enum cm_status check_gate(struct cm_infer *in, int i, bool needed,
                                 const struct cm_heads_type *key, struct cm_dim narrow,
                                 struct cm_dim wide)
{
    const struct cm_type *p = cm_infer_type(in, i);
    if (!p != !needed)
        return cm_infer_fail(in, "update_rule '%.*s' %s input %d",
                             CM_STR_FMT(cm_node_str(in->node, "update_rule")),
                             needed ? "needs" : "does not take", i);
    if (!p || p->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, i, 3, 3));
    CM_TRY(cm_heads_unify(in, p->dims[0], key->batch, "batches"));
    CM_TRY(cm_heads_unify(in, p->dims[1], key->length, "lengths"));
    const struct cm_dim last = p->dims[2];
    if (cm_dim_known(last) && cm_dim_known(narrow) && cm_dim_known(wide) &&
        last.value != narrow.value && last.value != wide.value)
        return cm_infer_fail(in, "the last axis of input %d has %lld, needs %lld or %lld", i,
                             (long long)last.value, (long long)narrow.value, (long long)wide.value);
    return CM_OK;
}

static enum cm_status linear_infer(struct cm_infer *in)
{
    const struct cm_type *q = cm_infer_type(in, CM_LINEAR_QUERY);
    const struct cm_type *past = cm_infer_type(in, CM_LINEAR_PAST);
    const int64_t q_heads = cm_node_int(in->node, "q_num_heads");
    const int64_t kv_heads = cm_node_int(in->node, "kv_num_heads");
    struct cm_heads_type query, key, value;
    struct cm_linear_rule rule;
    CM_TRY(cm_linear_rule(in->node, &rule, in->err));
    if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
        return cm_infer_fail(in, "%lld heads of keys do not divide %lld heads of queries",
                             (long long)kv_heads, (long long)q_heads);
    for (int i = CM_LINEAR_QUERY; i <= CM_LINEAR_VALUE; i++) {
        const int rank = cm_infer_type(in, i)->rank;
        if (rank != CM_RANK_UNKNOWN && rank != 3)
            return cm_infer_fail(in, "input %d has rank %d, needs 3", i, rank);
    }
    CM_TRY(cm_heads_read(in, CM_LINEAR_QUERY, q_heads, &query));
    CM_TRY(cm_heads_read(in, CM_LINEAR_KEY, kv_heads, &key));
    CM_TRY(cm_heads_read(in, CM_LINEAR_VALUE, kv_heads, &value));
    CM_TRY(cm_heads_unify(in, query.batch, key.batch, "batches"));
    CM_TRY(cm_heads_unify(in, key.batch, value.batch, "batches"));
    CM_TRY(cm_heads_unify(in, query.length, key.length, "lengths"));
    CM_TRY(cm_heads_unify(in, key.length, value.length, "lengths"));
    CM_TRY(cm_heads_unify(in, query.size, key.size, "head sizes of queries and keys"));
    const struct cm_dim heads = CM_DIM(kv_heads);
    CM_TRY(check_gate(in, CM_LINEAR_DECAY, rule.gated, &key, heads,
                      cm_dim_product(in->symbols, heads, key.size)));
    CM_TRY(check_gate(in, CM_LINEAR_BETA, rule.corrected, &key, CM_DIM(1), heads));
    struct cm_dim state[4] = {key.batch, heads, key.size, value.size};
    if (past && past->rank != CM_RANK_UNKNOWN) {
        CM_TRY(cm_infer_rank(in, CM_LINEAR_PAST, 4, 4));
        for (int i = 0; i < 4; i++) {
            CM_TRY(cm_heads_unify(in, past->dims[i], state[i], "sizes of the state"));
            (void)cm_dim_unify(state[i], past->dims[i], &state[i]);
        }
    }
    struct cm_dim y[3] = {query.batch, query.length,
                          cm_dim_product(in->symbols, CM_DIM(q_heads), state[3])};
    (void)cm_dim_unify(y[0], state[0], &y[0]);
    CM_TRY(cm_infer_set_tensor(in, 0, q->dtype, 3, y));
    return cm_infer_set_tensor(in, 1, past ? past->dtype : q->dtype, 4, state);
}

struct linear {
    struct cm_heads query, key, value;
    struct cm_linear_rule rule;
    int64_t decay_width, beta_width; /* last axes of the gates */
    float scale;
};

static const struct cm_tensor *input(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static enum cm_status linear_prepare(struct cm_call *call)
{
    struct linear *l = cm_call_state(call, sizeof *l);
    const int64_t kv_heads = cm_node_int(call->node, "kv_num_heads");
    const float scale = cm_node_float(call->node, "scale");
    size_t bytes;
    int64_t count;
    CM_TRY(cm_linear_rule(call->node, &l->rule, call->err));
    l->query =
        cm_heads_of(&call->in[CM_LINEAR_QUERY]->shape, cm_node_int(call->node, "q_num_heads"));
    l->key = cm_heads_of(&call->in[CM_LINEAR_KEY]->shape, kv_heads);
    l->value = cm_heads_of(&call->in[CM_LINEAR_VALUE]->shape, kv_heads);
    if (l->rule.gated)
        l->decay_width = call->in[CM_LINEAR_DECAY]->shape.dims[2];
    if (l->rule.corrected)
        l->beta_width = call->in[CM_LINEAR_BETA]->shape.dims[2];
    l->scale = scale != 0 ? scale : 1 / sqrtf((float)l->key.size);
    /* The state, then a row of keys, decays, values and results. */
    if (!cm_dim_mul(l->key.size + 2, l->value.size + 2, &count) ||
        !cm_dim_add(count, 2 * (l->key.size + l->value.size), &count) ||
        !cm_dtype_bytes(CM_FLOAT, count, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its state is too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* What one step does to the state of one head. */
static void update(const struct linear *l, float *state, const float *k, const float *decay,
                   float *v, float beta, float *seen)
{
    const int64_t keys = l->key.size, values = l->value.size;
    for (int64_t i = 0; l->rule.gated && i < keys; i++)
        for (int64_t j = 0; j < values; j++)
            state[i * values + j] *= decay[i];
    if (l->rule.corrected) { /* only what the state does not know yet */
        for (int64_t j = 0; j < values; j++)
            seen[j] = 0;
        for (int64_t i = 0; i < keys; i++)
            for (int64_t j = 0; j < values; j++)
                seen[j] += state[i * values + j] * k[i];
        for (int64_t j = 0; j < values; j++)
            v[j] = beta * (v[j] - seen[j]);
    }
    for (int64_t i = 0; i < keys; i++)
        for (int64_t j = 0; j < values; j++)
            state[i * values + j] += k[i] * v[j];
}

static void load_decay(const struct cm_call *call, const struct linear *l, int64_t row,
                       int64_t head, float *decay)
{
    const struct cm_tensor *p = call->in[CM_LINEAR_DECAY];
    const bool per_key = l->decay_width != l->key.heads;
    const int64_t at = row * l->decay_width + head * (per_key ? l->key.size : 1);
    cm_line_load(cm_line_at(p, at), 1, per_key ? l->key.size : 1, CM_FLOAT, decay);
    for (int64_t i = l->key.size - 1; i >= 0; i--)
        decay[i] = expf(decay[per_key ? i : 0]);
}

/* All queries that share one state, at one step. */
static void read_state(const struct cm_call *call, const struct linear *l, int64_t batch,
                       int64_t head, int64_t t, const float *state, float *q, float *y)
{
    const int64_t keys = l->key.size, values = l->value.size;
    const int64_t shared = l->query.heads / l->key.heads;
    for (int64_t h = head * shared; h < (head + 1) * shared; h++) {
        cm_line_load(cm_line_at(call->in[CM_LINEAR_QUERY], cm_heads_row(&l->query, batch, h, t)), 1,
                     keys, CM_FLOAT, q);
        for (int64_t j = 0; j < values; j++)
            y[j] = 0;
        for (int64_t i = 0; i < keys; i++)
            for (int64_t j = 0; j < values; j++)
                y[j] += q[i] * state[i * values + j];
        for (int64_t j = 0; j < values; j++)
            y[j] *= l->scale;
        const int64_t row = (batch * l->query.length + t) * l->query.heads + h;
        cm_line_save(cm_line_at(call->out[0], row * values), 1, values, CM_FLOAT, y);
    }
}

static void run_head(const struct cm_call *call, const struct linear *l, int64_t batch,
                     int64_t head)
{
    const int64_t keys = l->key.size, values = l->value.size, size = keys * values;
    const int64_t at = (batch * l->key.heads + head) * size;
    const struct cm_tensor *past = input(call, CM_LINEAR_PAST);
    float *state = call->scratch, *k = state + size, *decay = k + keys, *v = decay + keys,
          *y = v + values;
    if (past)
        cm_line_load(cm_line_at(past, at), 1, size, CM_FLOAT, state);
    for (int64_t i = 0; !past && i < size; i++)
        state[i] = 0;
    for (int64_t t = 0; t < l->key.length; t++) {
        const int64_t row = batch * l->key.length + t;
        float beta = 1;
        cm_line_load(cm_line_at(call->in[CM_LINEAR_KEY], cm_heads_row(&l->key, batch, head, t)), 1,
                     keys, CM_FLOAT, k);
        cm_line_load(cm_line_at(call->in[CM_LINEAR_VALUE], cm_heads_row(&l->value, batch, head, t)),
                     1, values, CM_FLOAT, v);
        if (l->rule.gated)
            load_decay(call, l, row, head, decay);
        if (l->rule.corrected)
            beta = (float)cm_tensor_real(call->in[CM_LINEAR_BETA],
                                         row * l->beta_width + (l->beta_width == 1 ? 0 : head));
        update(l, state, k, decay, v, beta, y);
        if (call->out[0])
            read_state(call, l, batch, head, t, state, k, y);
    }
    if (call->n_out > 1 && call->out[1])
        cm_line_save(cm_line_at(call->out[1], at), 1, size, CM_FLOAT, state);
}

static enum cm_status linear_run(struct cm_call *call)
{
    const struct linear *l = call->state;
    for (int64_t batch = 0; batch < l->key.batch; batch++)
        for (int64_t head = 0; head < l->key.heads; head++)
            run_head(call, l, batch, head);
    return CM_OK;
}

CM_OP(LinearAttention, .infer = linear_infer, .prepare = linear_prepare, .run = linear_run,
      .body = cm_linear_attention_body);
