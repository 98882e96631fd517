/* RotaryEmbedding: pairs of elements of each head turned by an angle that depends on the position.
 */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "graph/require.h"
#include "ops/attention/heads.h"
#include "tensor/line.h"

#include "base/number.h"

/* How many elements of a head are turned; half as many are in a row of the caches. */
static enum cm_status check_cache(struct cm_infer *in, int i, struct cm_dim size, bool by_id)
{
    const struct cm_type *cache = cm_infer_type(in, i);
    const int64_t turned = cm_node_int(in->node, "rotary_embedding_dim");
    const int64_t whole = turned ? turned : cm_dim_known(size) ? size.value : -1;
    if (cache->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (cache->rank != (by_id ? 2 : 3))
        return cm_infer_fail(in, "input %d has rank %d, needs %d", i, cache->rank, by_id ? 2 : 3);
    const struct cm_dim half = cache->dims[cache->rank - 1];
    if (cm_dim_known(half) && whole >= 0 && (whole % 2 != 0 || half.value != whole / 2))
        return cm_infer_fail(in,
                             "input %d has %lld columns, needs half of the %lld rotated elements",
                             i, (long long)half.value, (long long)whole);
    return CM_OK;
}

static enum cm_status rotary_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t turned = cm_node_int(in->node, "rotary_embedding_dim");
    struct cm_heads_type heads;
    CM_TRY(cm_heads_read(in, 0, cm_node_int(in->node, "num_heads"), &heads));
    if (turned < 0 || (cm_dim_known(heads.size) && turned > heads.size.value))
        return cm_infer_fail(in, "rotary_embedding_dim is %lld, heads have %lld elements",
                             (long long)turned, (long long)heads.size.value);
    const bool by_id = cm_infer_type(in, 3) != NULL;
    CM_TRY(check_cache(in, 1, heads.size, by_id));
    CM_TRY(check_cache(in, 2, heads.size, by_id));
    for (int i = 1; i < 4; i++) {
        const struct cm_type *type = cm_infer_type(in, i);
        if (!type || type->rank == CM_RANK_UNKNOWN || (by_id && i < 3))
            continue;
        struct cm_dim both;
        if (type->rank < 2 || !cm_dim_unify(type->dims[0], heads.batch, &both) ||
            !cm_dim_unify(type->dims[1], heads.length, &both))
            return cm_infer_fail(in, "input %d does not have a row for every position", i);
    }
    return cm_infer_set(in, 0, x);
}

struct rotary {
    struct cm_heads heads;
    int64_t half; /* pairs that are turned */
    bool interleaved;
};

static enum cm_status rotary_prepare(struct cm_call *call)
{
    struct rotary *r = cm_call_state(call, sizeof *r);
    const int64_t turned = cm_node_int(call->node, "rotary_embedding_dim");
    size_t bytes;
    r->heads = cm_heads_of(&call->in[0]->shape, cm_node_int(call->node, "num_heads"));
    r->half = (turned ? turned : r->heads.size) / 2;
    r->interleaved = cm_node_int(call->node, "interleaved") != 0;
    if (!cm_size_mul((size_t)r->heads.size, 2 * sizeof(float), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its heads are too large");
    cm_call_scratch(call, bytes + 16);
    return CM_OK;
}

/* Which row of the caches a position uses. */
static enum cm_status cache_row(struct cm_call *call, const struct rotary *r, int64_t batch,
                                int64_t position, int64_t *out)
{
    const int64_t at = batch * r->heads.length + position;
    *out = at;
    if (call->n_in < 4 || !call->in[3])
        return CM_OK;
    const int64_t limit = call->in[1]->shape.dims[0], other = call->in[2]->shape.dims[0];
    *out = cm_tensor_int(call->in[3], at);
    if (*out < 0 || *out >= limit || *out >= other)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "position id %lld is outside the %lld rows of the cache",
                            (long long)*out, (long long)(limit < other ? limit : other));
    return CM_OK;
}

static void turn(const struct rotary *r, const float *cosines, const float *sines, float *x)
{
    for (int64_t i = 0; i < r->half; i++) {
        float *a = x + (r->interleaved ? 2 * i : i);
        float *b = x + (r->interleaved ? 2 * i + 1 : r->half + i);
        const float real = cosines[i] * *a - sines[i] * *b;
        *b = sines[i] * *a + cosines[i] * *b;
        *a = real;
    }
}

static enum cm_status rotary_run(struct cm_call *call)
{
    const struct rotary *r = call->state;
    const struct cm_heads *h = &r->heads;
    float *x = call->scratch, *cosines = x + h->size, *sines = cosines + r->half;
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    for (int64_t batch = 0; batch < h->batch; batch++) {
        for (int64_t i = 0; i < h->length; i++) {
            int64_t row;
            CM_TRY(cache_row(call, r, batch, i, &row));
            cm_line_load(cm_line_at(call->in[1], row * r->half), 1, r->half, CM_FLOAT, cosines);
            cm_line_load(cm_line_at(call->in[2], row * r->half), 1, r->half, CM_FLOAT, sines);
            for (int64_t head = 0; head < h->heads; head++) {
                const int64_t at = cm_heads_row(h, batch, head, i);
                cm_line_load(cm_line_at(call->in[0], at), 1, h->size, CM_FLOAT, x);
                turn(r, cosines, sines, x);
                cm_line_save(cm_line_at(call->out[0], at), 1, h->size, CM_FLOAT, x);
            }
        }
    }
    return CM_OK;
}

/* Turned halves, or turned pairs side by side, and what is not turned behind them. A cache's rows
 * for every position get an axis for the heads: (batch, 1, length, half). */
static enum cm_status rotary_body(struct cm_body *b)
{
    const int rank = cm_builder_type(&b->build, cm_body_input(b, 0))->rank;
    const bool interleaved = cm_node_int(b->node, "interleaved") != 0;
    if (rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of input 0 is not known");
    return cm_body_formula(
        b,
        "swap(t) = Transpose<perm=[0, 2, 1, 3]>(t); x = %s; half = Shape<start=-1>(cos_cache);"
        "zero = [0]; one = [1]; end = half + half; join(t, u) = Concat<axis=-1>(t, u);"
        "cut(from, to, step) = Slice(x, from, to, [-1], [step]); rows(cache) = Unsqueeze(%s, [1]);"
        "%s"
        "cosines = rows(cos_cache); sines = rows(sin_cache);"
        "real = cosines * first - sines * second; imaginary = sines * first + cosines * second;"
        "y = %s; y = %s; Y = %s",
        rank == 3 ? "swap(Reshape(X, [0, 0, num_heads, -1]))" : "X",
        cm_body_input(b, 3) ? "Gather(cache, position_ids)" : "cache",
        interleaved ? "first = cut(zero, end, 2); second = cut(one, end, 2);"
                    : "first = cut(zero, half, 1); second = cut(half, end, 1);",
        interleaved
            ? "Reshape(join(Unsqueeze(real, [4]), Unsqueeze(imaginary, [4])), [0, 0, 0, -1])"
            : "join(real, imaginary)",
        cm_node_int(b->node, "rotary_embedding_dim") ? "join(y, cut(end, [inf], 1))" : "y",
        rank == 3 ? "Reshape(swap(y), [0, 0, -1])" : "y");
}

static void rotary_require(struct cm_require *r)
{
    const struct cm_type *x = cm_require_type(r, 0), *ids = cm_require_type(r, 3);
    const int64_t turned = cm_node_int(r->node, "rotary_embedding_dim");
    const bool by_id = r->node->n_inputs > 3 && r->in[3];
    if (!x || (by_id && !ids))
        return;
    for (int i = by_id ? 3 : 1; i < (by_id ? 4 : 3); i++) {
        const char *reason = by_id ? "position_ids do not have an element for every position"
                                   : "the caches do not have a row for every position";
        cm_require_same(r, i, 0, 0, 0, reason);
        cm_require_same(r, i, 1, 0, x->rank == 4 ? 2 : 1, reason);
    }
    if (by_id)
        cm_require_least(r, 3, 0, "a position id is below 0");
    for (int i = 1; i < 3; i++) {
        const char *reason = "the caches do not have half as many columns as elements are rotated";
        if (turned) {
            cm_require_size(r, i, -1, turned / 2, reason);
        } else if (x->rank == 4 && !cm_dim_known(x->dims[3])) {
            const cm_value twice =
                cm_emit(r, "Mul", cm_require_length(r, i, -1), cm_emit_int64s(r, 2));
            cm_require_that(r, i, cm_emit(r, "Equal", twice, cm_require_length(r, 0, 3)), reason);
        } else if (x->rank == 4) {
            cm_require_size(r, i, -1, x->dims[3].value / 2, reason);
        }
    }
}

CM_OP(RotaryEmbedding, .require = rotary_require, .infer = rotary_infer, .prepare = rotary_prepare,
      .run = rotary_run, .body = rotary_body);
