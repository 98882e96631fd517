/* Attention of float tensors with heads on an axis of their own, a few queries at a time: scores
 * stay in the cache between the two products, and nothing as large as all of them is ever stored.
 */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/attention/attention_tiles.h"
#include "base/parallel.h"
#include "graph/backend.h"

enum { QUERY, KEY, VALUE, MASK }; /* operands */

/* One head. Rows follow each other without gaps. */
struct attention_head {
    const struct attention_plan *plan;
    const float *q, *k, *v;
    struct attention_mask mask;
    float *y;
    float *keys, *values, *scores, *result; /* scratch: panels of keys and values, ROWS rows */
};

static CM_ALWAYS_INLINE void attend_on(enum cm_machine machine, const struct attention_head *h)
{
    const struct attention_plan *p = h->plan;
    const float *values = pad_rows(p->keys, p->value_size, p->value_padded, h->v, h->values);
    pack_panels(p->keys, p->keys_padded, p->size, h->k, h->keys);
    for (int64_t first = 0; first < p->queries; first += ROWS) {
        const int64_t n = p->queries - first < ROWS ? p->queries - first : ROWS;
        const float *rows[ROWS], *weights[ROWS];
        for (int64_t r = 0; r < ROWS; r++) { /* the last ones again where there are no more */
            rows[r] = h->q + (first + (r < n ? r : n - 1)) * p->size;
            weights[r] = h->scores + (r < n ? r : n - 1) * p->keys_padded;
        }
        for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
            tile(machine, false, p->size, rows, 1, h->keys + j * p->size, WIDTH, h->scores + j,
                 p->keys_padded);
        for (int64_t r = 0; r < n; r++)
            soften(machine, p, &h->mask, first + r, h->scores + r * p->keys_padded);
        for (int64_t d = 0; d < p->value_padded; d += WIDTH)
            tile(machine, false, p->keys, weights, 1, values + d, p->value_padded, h->result + d,
                 p->value_padded);
        for (int64_t r = 0; r < n; r++)
            memcpy(h->y + (first + r) * p->value_size, h->result + r * p->value_padded,
                   (size_t)p->value_size * sizeof(float));
    }
}

CM_BUILDS(attend, (const struct attention_head *h), (machine, h))

/* ---- The call ---- */

static bool accepts_mask(struct cm_call *call)
{
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    const int64_t keys = call->in[KEY]->shape.dims[2];
    if (!mask)
        return true;
    if (mask->type != CM_FLOAT && mask->type != CM_BOOL)
        return cm_call_decline_type(call, mask);
    if (mask->shape.rank < 1 || mask->shape.dims[mask->shape.rank - 1] != keys)
        return cm_call_decline(call, "the mask does not cover all keys");
    return true;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    for (int i = QUERY; i <= VALUE; i++) {
        if (call->in[i]->type != CM_FLOAT)
            return cm_call_decline_type(call, call->in[i]);
        if (call->in[i]->shape.rank != 4)
            return cm_call_decline(call, "the heads have no axis of their own");
    }
    for (int i = MASK + 1; i < call->n_in; i++)
        if (call->in[i])
            return cm_call_decline(call, "the node has a past or padding");
    for (int o = 1; o < call->n_out; o++)
        if (call->out[o])
            return cm_call_decline(call, "outputs beside the first are wanted");
    if (cm_node_float(node, "softcap") != 0 || cm_node_int(node, "left_window_size") >= 0 ||
        cm_node_int(node, "right_window_size") >= 0)
        return cm_call_decline(call, "the scores are capped or windowed");
    if (cm_node_has_attr(node, "softmax_precision") &&
        cm_node_int(node, "softmax_precision") != CM_FLOAT)
        return cm_call_decline(call, "the softmax has another precision");
    return accepts_mask(call);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct attention_plan *p = cm_call_state(call, sizeof *p);
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    int64_t of_keys, of_values, of_rows, floats;
    size_t bytes;
    const bool planned =
        plan_attention(call->node, call->in[QUERY], call->in[KEY], call->in[VALUE], mask, p);
    share_out(p, 1);
    if (!planned || !cm_dim_mul(p->keys_padded, p->size, &of_keys) ||
        !cm_dim_mul(p->keys, p->value_padded, &of_values) ||
        !cm_dim_mul(ROWS, p->keys_padded, &of_rows) ||
        !cm_dim_add(of_keys, of_values, &p->part_floats) ||
        !cm_dim_add(p->part_floats, of_rows, &p->part_floats) ||
        !cm_dim_add(p->part_floats, ROWS * p->value_padded, &p->part_floats) ||
        !cm_dim_mul(p->part_floats, p->parts, &floats) || !cm_dtype_bytes(CM_FLOAT, floats, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its operands are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static void attend_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct attention_plan *p = call->state;
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    void (*const run_head)(const struct attention_head *) = attend_builds[cm_this_machine()];
    for (int64_t part = begin; part < end; part++) {
        struct attention_head h = {.plan = p};
        h.keys = (float *)call->scratch + part * p->part_floats;
        h.values = h.keys + p->keys_padded * p->size;
        h.scores = h.values + p->keys * p->value_padded;
        h.result = h.scores + ROWS * p->keys_padded;
        const int64_t first = part * p->heads_of_part, next = first + p->heads_of_part;
        for (int64_t i = first; i < next && i < p->batches * p->heads; i++) {
            const int64_t batch = i / p->heads, head = i % p->heads;
            const int64_t kv = batch * p->kv_heads + head / (p->heads / p->kv_heads);
            h.q = (const float *)call->in[QUERY]->data + i * p->queries * p->size;
            h.k = (const float *)call->in[KEY]->data + kv * p->keys * p->size;
            h.v = (const float *)call->in[VALUE]->data + kv * p->keys * p->value_size;
            h.y = (float *)call->out[0]->data + i * p->queries * p->value_size;
            h.mask = mask_at(mask, p, batch, head);
            run_head(&h);
        }
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct attention_plan *p = call->state;
    if (cm_tensor_count(call->out[0]) > 0)
        cm_parallel(p->parts, 1, attend_parts, call);
    return CM_OK;
}

CM_KERNEL(cpu, Attention, .label = "attention by heads", .accepts = accepts, .prepare = prepare,
          .run = run);
