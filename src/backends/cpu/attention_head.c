/* Attention of float tensors with heads on an axis of their own, a few queries at a time: scores
 * stay in the cache between the two products, and nothing as large as all of them is ever stored.
 *
 * One head is written once, over vectors of WIDTH elements that the compiler turns into what the
 * machine has; on x86 it is compiled a second time for machines with AVX2. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "graph/op.h"

#include <math.h>

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif
#if defined(__GNUC__) && defined(__x86_64__)
#define HAS_AVX2_BUILD 1
#endif

enum { QUERY, KEY, VALUE, MASK }; /* operands */

enum {
    ROWS = 4, /* queries at a time */
    WIDTH = 16,
    MOST_PARTS = 32, /* heads are shared out in so many parts, each with scratch of its own */
};

struct attention_plan {
    int64_t batches, heads, kv_heads, queries, keys, size, value_size;
    int64_t keys_padded, value_padded; /* to whole vectors */
    int64_t mask_strides[3];           /* of batch, head, query */
    float scale;
    bool causal;
    int64_t parts, heads_of_part;
    int64_t part_floats; /* of scratch */
};

/* One head. Rows follow each other without gaps. */
struct attention_head {
    const struct attention_plan *plan;
    const float *q, *k, *v;
    const float *mask;    /* at this head; NULL: none, or of bools */
    const uint8_t *bools; /* the same of bools */
    float *y;
    float *keys, *values, *scores, *result; /* scratch: panels of keys and values, ROWS rows */
};

/* a * b + c, rounded once where the machine can */
static ALWAYS_INLINE float muladd(bool fused, float a, float b, float c)
{
#if defined(__GNUC__)
    if (fused)
        return __builtin_fmaf(a, b, c);
#endif
    (void)fused;
    return a * b + c;
}

/* ROWS x WIDTH sums over n of a[row][i] * b[i][column]. */
static ALWAYS_INLINE void tile(bool fused, int64_t n, const float *const *a, const float *b,
                               int64_t b_row, float *c, int64_t c_row)
{
    float s0[WIDTH] = {0}, s1[WIDTH] = {0}, s2[WIDTH] = {0}, s3[WIDTH] = {0};
    const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
    for (int64_t i = 0; i < n; i++, b += b_row) {
        for (int j = 0; j < WIDTH; j++) {
            s0[j] = muladd(fused, a0[i], b[j], s0[j]);
            s1[j] = muladd(fused, a1[i], b[j], s1[j]);
            s2[j] = muladd(fused, a2[i], b[j], s2[j]);
            s3[j] = muladd(fused, a3[i], b[j], s3[j]);
        }
    }
    for (int j = 0; j < WIDTH; j++) {
        c[j] = s0[j];
        c[c_row + j] = s1[j];
        c[2 * c_row + j] = s2[j];
        c[3 * c_row + j] = s3[j];
    }
}

/* exp of x <= 0, to a unit or two in the last place: 2^n * e^r with |r| <= ln(2) / 2. Below the
 * smallest normal number it is 0. Without branches, so that many are computed at once. */
static ALWAYS_INLINE float exp_below(bool fused, float given)
{
    const float lowest = -87.0f, whole = 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
    const float keep = given < lowest ? 0.0f : 1.0f, x = given < lowest ? lowest : given;
    const float shifted = muladd(fused, x, 1.44269504f, whole), n = shifted - whole;
    const float r = muladd(fused, n, 2.12194440e-4f, muladd(fused, n, -0.693359375f, x));
    float p = 1.9875691500e-4f, power;
    uint32_t bits;
    p = muladd(fused, p, r, 1.3981999507e-3f);
    p = muladd(fused, p, r, 8.3334519073e-3f);
    p = muladd(fused, p, r, 4.1665795894e-2f);
    p = muladd(fused, p, r, 1.6666665459e-1f);
    p = muladd(fused, p, r, 5.0000001201e-1f);
    p = muladd(fused, p, r * r, r) + 1;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23; /* the low bits of shifted are n */
    memcpy(&power, &bits, sizeof power);
    return p * power * keep;
}

/* Scores of one query to the weights of its keys. */
static ALWAYS_INLINE void soften(bool fused, const struct attention_head *h, int64_t query,
                                 float *s)
{
    const struct attention_plan *p = h->plan;
    const int64_t at = query * p->mask_strides[2], n = p->keys;
    float most = -INFINITY, highest[WIDTH];
    double sum = 0, sums[WIDTH] = {0};
    for (int64_t j = 0; j < n; j++)
        s[j] *= p->scale;
    if (h->mask)
        for (int64_t j = 0; j < n; j++)
            s[j] += h->mask[at + j];
    for (int64_t j = 0; h->bools && j < n; j++)
        s[j] = h->bools[at + j] ? s[j] : -INFINITY;
    for (int64_t j = query + 1; p->causal && j < n; j++)
        s[j] = -INFINITY;
    for (int64_t j = n; j < p->keys_padded; j++)
        s[j] = -INFINITY;
    for (int i = 0; i < WIDTH; i++)
        highest[i] = -INFINITY;
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        for (int i = 0; i < WIDTH; i++)
            highest[i] = s[j + i] > highest[i] ? s[j + i] : highest[i];
    for (int i = 0; i < WIDTH; i++)
        most = highest[i] > most ? highest[i] : most;
    if (most == -INFINITY) { /* a query that may see nothing; NaN stays */
        for (int64_t j = 0; j < n; j++)
            s[j] = s[j] == s[j] ? 0 : s[j];
        return;
    }
    for (int64_t j = 0; j < p->keys_padded; j++)
        s[j] = exp_below(fused, s[j] - most);
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        for (int i = 0; i < WIDTH; i++)
            sums[i] += (double)s[j + i];
    for (int i = 0; i < WIDTH; i++)
        sum += sums[i];
    const float part = (float)(1 / sum);
    for (int64_t j = 0; j < n; j++)
        s[j] *= part;
}

/* Keys as panels: for each WIDTH keys, their elements side by side. */
static ALWAYS_INLINE void pack_keys(const struct attention_head *h)
{
    const struct attention_plan *p = h->plan;
    for (int64_t first = 0; first < p->keys_padded; first += WIDTH) {
        float *panel = h->keys + first * p->size;
        for (int64_t j = 0; j < WIDTH; j++)
            for (int64_t d = 0; d < p->size; d++)
                panel[d * WIDTH + j] = first + j < p->keys ? h->k[(first + j) * p->size + d] : 0;
    }
}

/* Values with rows of whole vectors; as they are where they have such rows. */
static ALWAYS_INLINE const float *pack_values(const struct attention_head *h)
{
    const struct attention_plan *p = h->plan;
    if (p->value_padded == p->value_size)
        return h->v;
    for (int64_t j = 0; j < p->keys; j++)
        for (int64_t d = 0; d < p->value_padded; d++)
            h->values[j * p->value_padded + d] =
                d < p->value_size ? h->v[j * p->value_size + d] : 0;
    return h->values;
}

static ALWAYS_INLINE void attend(bool fused, const struct attention_head *h)
{
    const struct attention_plan *p = h->plan;
    const float *values = pack_values(h);
    pack_keys(h);
    for (int64_t first = 0; first < p->queries; first += ROWS) {
        const int64_t n = p->queries - first < ROWS ? p->queries - first : ROWS;
        const float *rows[ROWS], *weights[ROWS];
        for (int64_t r = 0; r < ROWS; r++) { /* the last ones again where there are no more */
            rows[r] = h->q + (first + (r < n ? r : n - 1)) * p->size;
            weights[r] = h->scores + (r < n ? r : n - 1) * p->keys_padded;
        }
        for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
            tile(fused, p->size, rows, h->keys + j * p->size, WIDTH, h->scores + j, p->keys_padded);
        for (int64_t r = 0; r < n; r++)
            soften(fused, h, first + r, h->scores + r * p->keys_padded);
        for (int64_t d = 0; d < p->value_padded; d += WIDTH)
            tile(fused, p->keys, weights, values + d, p->value_padded, h->result + d,
                 p->value_padded);
        for (int64_t r = 0; r < n; r++)
            memcpy(h->y + (first + r) * p->value_size, h->result + r * p->value_padded,
                   (size_t)p->value_size * sizeof(float));
    }
}

static void attend_plain(const struct attention_head *h)
{
    attend(false, h);
}

#ifdef HAS_AVX2_BUILD
__attribute__((target("avx2,fma"))) static void attend_avx2(const struct attention_head *h)
{
    attend(true, h);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

/* ---- The call ---- */

static bool accepts_mask(struct cm_call *call)
{
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    const int64_t keys = call->in[KEY]->shape.dims[2];
    if (!mask)
        return true;
    if (mask->type != CM_FLOAT && mask->type != CM_BOOL)
        return cm_call_decline(call, "its mask is of type %s", cm_dtype_name(mask->type));
    if (mask->shape.rank < 1 || mask->shape.dims[mask->shape.rank - 1] != keys)
        return cm_call_decline(call, "its mask does not cover all keys");
    return true;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    for (int i = QUERY; i <= VALUE; i++) {
        if (call->in[i]->type != CM_FLOAT)
            return cm_call_decline(call, "operand %d is of type %s", i,
                                   cm_dtype_name(call->in[i]->type));
        if (call->in[i]->shape.rank != 4)
            return cm_call_decline(call, "its heads have no axis of their own");
    }
    for (int i = MASK + 1; i < call->n_in; i++)
        if (call->in[i])
            return cm_call_decline(call, "it has a past or padding");
    for (int o = 1; o < call->n_out; o++)
        if (call->out[o])
            return cm_call_decline(call, "more than its result is wanted");
    if (cm_node_float(node, "softcap") != 0 || cm_node_int(node, "left_window_size") >= 0 ||
        cm_node_int(node, "right_window_size") >= 0)
        return cm_call_decline(call, "its scores are capped or windowed");
    if (cm_node_has_attr(node, "softmax_precision") &&
        cm_node_int(node, "softmax_precision") != CM_FLOAT)
        return cm_call_decline(call, "its softmax has another precision");
    return accepts_mask(call);
}

static void plan_mask(const struct cm_call *call, struct attention_plan *p)
{
    const struct cm_tensor *mask = call->n_in > MASK ? call->in[MASK] : NULL;
    int64_t stride = 1;
    if (!mask)
        return;
    for (int i = mask->shape.rank - 2, axis = 2; i >= 0 && axis >= 0; i--, axis--) {
        stride *= mask->shape.dims[i + 1];
        p->mask_strides[axis] = mask->shape.dims[i] == 1 ? 0 : stride;
    }
}

static bool padded(int64_t n, int64_t *out)
{
    if (!cm_dim_add(n, WIDTH - 1, out))
        return false;
    *out -= *out % WIDTH;
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct attention_plan *p = cm_call_state(call, sizeof *p);
    const int64_t *q = call->in[QUERY]->shape.dims, *k = call->in[KEY]->shape.dims;
    int64_t of_keys, of_values, of_rows, floats;
    p->batches = q[0];
    p->heads = q[1];
    p->queries = q[2];
    p->size = q[3];
    p->kv_heads = k[1];
    p->keys = k[2];
    p->value_size = call->in[VALUE]->shape.dims[3];
    p->causal = cm_node_int(call->node, "is_causal") != 0;
    p->scale = cm_node_has_attr(call->node, "scale") ? cm_node_float(call->node, "scale")
                                                     : (float)(1 / sqrt((double)p->size));
    plan_mask(call, p);
    const int64_t heads = p->batches * p->heads;
    p->parts = heads < MOST_PARTS ? heads : MOST_PARTS;
    p->heads_of_part = p->parts > 0 ? (heads + p->parts - 1) / p->parts : 0;
    size_t bytes;
    if (!padded(p->keys, &p->keys_padded) || !padded(p->value_size, &p->value_padded) ||
        !cm_dim_mul(p->keys_padded, p->size, &of_keys) ||
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
    void (*run_head)(const struct attention_head *) = attend_plain;
#ifdef HAS_AVX2_BUILD
    if (has_avx2())
        run_head = attend_avx2;
#endif
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
            const int64_t at = batch * p->mask_strides[0] + head * p->mask_strides[1];
            h.q = (const float *)call->in[QUERY]->data + i * p->queries * p->size;
            h.k = (const float *)call->in[KEY]->data + kv * p->keys * p->size;
            h.v = (const float *)call->in[VALUE]->data + kv * p->keys * p->value_size;
            h.y = (float *)call->out[0]->data + i * p->queries * p->value_size;
            h.mask = mask && mask->type == CM_FLOAT ? (const float *)mask->data + at : NULL;
            h.bools = mask && mask->type == CM_BOOL ? (const uint8_t *)mask->data + at : NULL;
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

CM_KERNEL(cpu, Attention, .accepts = accepts, .prepare = prepare, .run = run);
