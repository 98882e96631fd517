/* What attention and its gradient share: products of a few rows, the softmax between them, and how
 * a call is laid out.
 *
 * One head is written once, over vectors of WIDTH elements that the compiler turns into what the
 * machine has; it is compiled again for each (base/machine.h). */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_ATTENTION_ATTENTION_TILES_H
#define CM_BACKENDS_CPU_ATTENTION_ATTENTION_TILES_H

#include "backends/cpu/exp_below.h"
#include "base/machine.h"
#include "base/number.h"
#include "graph/op.h"
#include "tensor/vector_math.h"

enum {
    ROWS = 8, /* queries at a time */
    WIDTH = 16,
    MOST_PARTS = 32, /* heads are shared out in so many parts, each with scratch of its own */
};

struct attention_plan {
    int64_t batches, heads, kv_heads, queries, keys, size, value_size;
    int64_t keys_padded, size_padded, value_padded; /* to whole vectors */
    int64_t mask_strides[3];                        /* of batch, head, query */
    float scale;
    bool causal;
    bool by_head; /* heads are counted with the batches inside, not the other way round */
    int64_t parts, heads_of_part;
    int64_t part_floats; /* of scratch */
};

/* Of one head. */
struct attention_mask {
    const float *numbers; /* NULL: none, or of bools */
    const uint8_t *bools; /* the same of bools */
};

/* Eight times `width` sums over n: s[r][column] of a[r][i * a_step] * b[i][column], the last four
 * of b2 in place of b, added to what c has or not. Written out, so that each stays in one register:
 * width is what the machine has. */
static CM_ALWAYS_INLINE void eight_sums(enum cm_machine machine, int width, bool added, int64_t n,
                                        const float *const *a, int64_t a_step, const float *b,
                                        const float *b2, int64_t b_row, float *const *c)
{
    float s0[WIDTH], s1[WIDTH], s2[WIDTH], s3[WIDTH], s4[WIDTH], s5[WIDTH], s6[WIDTH], s7[WIDTH];
    const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *a4 = a[4], *a5 = a[5], *a6 = a[6],
                *a7 = a[7];
    for (int j = 0; j < width; j++) {
        s0[j] = added ? c[0][j] : 0;
        s1[j] = added ? c[1][j] : 0;
        s2[j] = added ? c[2][j] : 0;
        s3[j] = added ? c[3][j] : 0;
        s4[j] = added ? c[4][j] : 0;
        s5[j] = added ? c[5][j] : 0;
        s6[j] = added ? c[6][j] : 0;
        s7[j] = added ? c[7][j] : 0;
    }
    for (int64_t i = 0; i < n; i++, b += b_row, b2 += b_row) {
        const int64_t at = i * a_step;
        for (int j = 0; j < width; j++) {
            s0[j] = cm_muladd(machine, a0[at], b[j], s0[j]);
            s1[j] = cm_muladd(machine, a1[at], b[j], s1[j]);
            s2[j] = cm_muladd(machine, a2[at], b[j], s2[j]);
            s3[j] = cm_muladd(machine, a3[at], b[j], s3[j]);
            s4[j] = cm_muladd(machine, a4[at], b2[j], s4[j]);
            s5[j] = cm_muladd(machine, a5[at], b2[j], s5[j]);
            s6[j] = cm_muladd(machine, a6[at], b2[j], s6[j]);
            s7[j] = cm_muladd(machine, a7[at], b2[j], s7[j]);
        }
    }
    for (int j = 0; j < width; j++) {
        c[0][j] = s0[j];
        c[1][j] = s1[j];
        c[2][j] = s2[j];
        c[3][j] = s3[j];
        c[4][j] = s4[j];
        c[5][j] = s5[j];
        c[6][j] = s6[j];
        c[7][j] = s7[j];
    }
}

/* ROWS x WIDTH sums over n of a[row][i * a_step] * b[i][column], added to what c has or not: eight
 * rows at a time, or, with narrower registers, four rows of two, which reads less. */
static CM_ALWAYS_INLINE void tile(enum cm_machine machine, bool added, int64_t n,
                                  const float *const *a, int64_t a_step, const float *b,
                                  int64_t b_row, float *c, int64_t c_row)
{
    if (machine == CM_AVX512) {
        float *const rows[] = {c,
                               c + c_row,
                               c + 2 * c_row,
                               c + 3 * c_row,
                               c + 4 * c_row,
                               c + 5 * c_row,
                               c + 6 * c_row,
                               c + 7 * c_row};
        eight_sums(machine, WIDTH, added, n, a, a_step, b, b, b_row, rows);
        return;
    }
    const int width = machine == CM_AVX2 ? 8 : 4;
    for (int r = 0; r < ROWS; r += 4, c += 4 * c_row)
        for (int j = 0; j < WIDTH; j += 2 * width) {
            float *const at = c + j, *const next = at + width;
            const float *const twice[] = {a[r], a[r + 1], a[r + 2], a[r + 3],
                                          a[r], a[r + 1], a[r + 2], a[r + 3]};
            float *const rows[] = {at,   at + c_row,   at + 2 * c_row,   at + 3 * c_row,
                                   next, next + c_row, next + 2 * c_row, next + 3 * c_row};
            eight_sums(machine, width, added, n, twice, a_step, b + j, b + j + width, b_row, rows);
        }
}

/* Scores of one query to the weights of its keys. */
static CM_ALWAYS_INLINE void soften(enum cm_machine machine, const struct attention_plan *p,
                                    const struct attention_mask *m, int64_t query, float *s)
{
    const int64_t at = query * p->mask_strides[2], n = p->keys;
    float most = -INFINITY, highest[WIDTH];
    double sum = 0, sums[WIDTH] = {0};
    for (int64_t j = 0; j < n; j++)
        s[j] *= p->scale;
    if (m->numbers)
        for (int64_t j = 0; j < n; j++)
            s[j] += m->numbers[at + j];
    for (int64_t j = 0; m->bools && j < n; j++)
        s[j] = m->bools[at + j] ? s[j] : -INFINITY;
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
        for (int64_t j = 0; j < p->keys_padded; j++)
            s[j] = s[j] == s[j] ? 0 : s[j];
        return;
    }
    for (int64_t j = 0; j < p->keys_padded; j++)
        s[j] = exp_below(machine, s[j] - most);
    for (int64_t j = 0; j < p->keys_padded; j += WIDTH)
        for (int i = 0; i < WIDTH; i++)
            sums[i] += (double)s[j + i];
    for (int i = 0; i < WIDTH; i++)
        sum += sums[i];
    const float part = (float)(1 / sum);
    for (int64_t j = 0; j < n; j++)
        s[j] *= part;
}

/* Rows as panels: for each WIDTH of them, their elements side by side; zeros after the last. */
static CM_ALWAYS_INLINE void pack_panels(int64_t rows, int64_t rows_padded, int64_t size,
                                         const float *from, float *to)
{
    for (int64_t first = 0; first < rows_padded; first += WIDTH) {
        float *panel = to + first * size;
        for (int64_t j = 0; j < WIDTH; j++)
            for (int64_t d = 0; d < size; d++)
                panel[d * WIDTH + j] = first + j < rows ? from[(first + j) * size + d] : 0;
    }
}

/* Rows of whole vectors; as they are where they are such. */
static CM_ALWAYS_INLINE const float *pad_rows(int64_t rows, int64_t size, int64_t padded,
                                              const float *from, float *to)
{
    if (padded == size)
        return from;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t d = 0; d < padded; d++)
            to[j * padded + d] = d < size ? from[j * size + d] : 0;
    return to;
}

/* ---- The call ---- */

static inline bool padded(int64_t n, int64_t *out)
{
    if (!cm_dim_add(n, WIDTH - 1, out))
        return false;
    *out -= *out % WIDTH;
    return true;
}

/* Is each axis of the mask 1 or as long as that of the scores, the last one as long? */
static inline bool mask_lies_over(const struct cm_tensor *mask, const struct cm_tensor *q,
                                  const struct cm_tensor *k)
{
    const int rank = mask->shape.rank;
    bool lies = rank >= 1 && rank <= 4 && mask->shape.dims[rank - 1] == k->shape.dims[2];
    for (int d = 0; lies && d + 1 < rank; d++)
        lies = mask->shape.dims[d] == 1 || mask->shape.dims[d] == q->shape.dims[4 - rank + d];
    return lies;
}

static inline void plan_mask(const struct cm_tensor *mask, struct attention_plan *p)
{
    int64_t stride = 1;
    if (!mask)
        return;
    for (int i = mask->shape.rank - 2, axis = 2; i >= 0 && axis >= 0; i--, axis--) {
        stride *= mask->shape.dims[i + 1];
        p->mask_strides[axis] = mask->shape.dims[i] == 1 ? 0 : stride;
    }
}

/* All but what the parts need. */
static inline bool plan_attention(const struct cm_node *node, const struct cm_tensor *q,
                                  const struct cm_tensor *k, const struct cm_tensor *v,
                                  const struct cm_tensor *mask, struct attention_plan *p)
{
    p->batches = q->shape.dims[0];
    p->heads = q->shape.dims[1];
    p->queries = q->shape.dims[2];
    p->size = q->shape.dims[3];
    p->kv_heads = k->shape.dims[1];
    p->keys = k->shape.dims[2];
    p->value_size = v->shape.dims[3];
    p->causal = cm_node_int(node, "is_causal") != 0;
    p->scale = cm_node_has_attr(node, "scale") ? cm_node_float(node, "scale")
                                               : (float)(1 / sqrt((double)p->size));
    plan_mask(mask, p);
    return padded(p->keys, &p->keys_padded) && padded(p->size, &p->size_padded) &&
           padded(p->value_size, &p->value_padded);
}

/* `together` heads that follow each other stay in one part. */
static inline void share_out(struct attention_plan *p, int64_t together)
{
    const int64_t groups = together > 0 ? p->batches * p->heads / together : 0;
    p->parts = groups < MOST_PARTS ? groups : MOST_PARTS;
    p->heads_of_part = p->parts > 0 ? (groups + p->parts - 1) / p->parts * together : 0;
}

static inline struct attention_mask
mask_at(const struct cm_tensor *mask, const struct attention_plan *p, int64_t batch, int64_t head)
{
    const int64_t at = batch * p->mask_strides[0] + head * p->mask_strides[1];
    struct attention_mask m = {0};
    if (mask && mask->type == CM_BOOL)
        m.bools = (const uint8_t *)mask->data + at;
    else if (mask)
        m.numbers = (const float *)mask->data + at;
    return m;
}

#endif
