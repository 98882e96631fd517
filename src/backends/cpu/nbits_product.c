/* MatMulNBits and MatMulBnb4; weights stay coded. Codes of 4 or 8 bits in large blocks: for few
 * rows of the left operand they are multiplied as they are read; for more, 16 rows of weights at a
 * time become floats, and the products of all rows with them follow. Other forms: coded_rows.c. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/attention/attention_tiles.h"
#include "backends/cpu/coded_rows.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "graph/nbits_form.h"
#include "tensor/line.h"

enum { A, B, SCALES, ZEROS, G_IDX, BIAS };
enum {
    FEW = 8,      /* rows of A: then codes are multiplied as they are read */
    TOGETHER = 4, /* rows of weights that are read side by side */
    GRAIN = 16,   /* rows of weights of one piece of work */
    MOST_SIZE = 1 << 30,
};

struct nbits {
    int64_t m, n, k, bits, block, blocks;
    bool bnb4, stored;             /* see struct cm_weight_product */
    bool by_rows;                  /* is a product of coded_rows.c */
    bool few;                      /* rows of A, or no vectors: codes are multiplied as they are */
    int64_t row_bytes, zero_bytes; /* of a row of codes, and of its zero points */
    bool rounds;                   /* rows of A, see cm_nbits_round */
    size_t sums;                   /* place in scratch, in bytes: for few rows, see split_rows */
    size_t floats[BIAS + 1], y;    /* and for operands and the result as floats, see floats_of */
    int64_t parts, part_floats;    /* for more: scratch of each piece of work */
};

static const struct cm_tensor *operand(const struct cm_call *call, int i)
{
    return i < call->n_in ? call->in[i] : NULL;
}

static bool in_range(int64_t size)
{
    return size >= 1 && size <= MOST_SIZE;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool read_sizes(struct cm_call *call, struct nbits *p)
{
    p->bnb4 = cm_str_is(call->node->op_type, "MatMulBnb4");
    p->stored = p->bnb4 && cm_node_int(call->node, "transB") == 0;
    p->n = cm_node_int(call->node, "N");
    p->k = cm_node_int(call->node, "K");
    p->bits = p->bnb4 ? 4 : cm_node_int(call->node, "bits");
    p->block = cm_node_int(call->node, "block_size");
    if (!in_range(p->n) || !in_range(p->k) || !in_range(p->block))
        return cm_call_decline(call, "the sizes are out of range");
    if ((p->bits != 2 && p->bits != 4 && p->bits != 8) || (!p->bnb4 && p->block * p->bits % 8))
        return cm_call_decline(call, "the weights have %lld bits in blocks of %lld",
                               (long long)p->bits, (long long)p->block);
    p->by_rows = p->bnb4 || p->bits == 2 || p->block % (2 * WIDTH) || operand(call, G_IDX);
    p->blocks = p->bnb4 ? 0 : quotient_up(p->k, p->block);
    p->row_bytes = p->blocks * (p->block * p->bits / 8);
    p->zero_bytes = quotient_up(p->blocks * p->bits, 8);
    p->m = cm_tensor_count(call->in[A]) / (p->stored ? p->n : p->k);
    return true;
}

static bool accepts_count(struct cm_call *call, int i, int64_t count)
{
    const struct cm_tensor *p = operand(call, i);
    return !p || cm_tensor_count(p) == count ||
           cm_call_decline(call, "operand %d does not have %lld elements", i, (long long)count);
}

static bool accepts_bnb4(struct cm_call *call, const struct nbits *p)
{
    const int64_t type = cm_node_int(call->node, "quant_type");
    if (type != 0 && type != 1)
        return cm_call_decline(call, "attribute 'quant_type' is %lld", (long long)type);
    return accepts_count(call, B, quotient_up(p->n * p->k, 2)) &&
           accepts_count(call, SCALES, quotient_up(p->n * p->k, p->block));
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *a = call->in[A], *zeros = operand(call, ZEROS);
    const struct cm_tensor *g_idx = operand(call, G_IDX);
    struct nbits p;
    if (!read_sizes(call, &p))
        return false;
    if (a->shape.rank < 1 || a->shape.dims[a->shape.rank - 1] != (p.stored ? p.n : p.k) || p.m == 0)
        return cm_call_decline(call, "the left operand is empty or has another width");
    if (p.bnb4)
        return accepts_bnb4(call, &p);
    if (cm_node_int(call->node, "weight_prepacked"))
        return cm_call_decline(call, "the weights are packed for a device");
    const int64_t n_zeros = p.n * (zeros && zeros->type == CM_UINT8 ? p.zero_bytes : p.blocks);
    return accepts_count(call, B, p.n * p.row_bytes) &&
           accepts_count(call, SCALES, p.n * p.blocks) && accepts_count(call, ZEROS, n_zeros) &&
           ((g_idx && cm_tensor_count(g_idx) == p.blocks * p.block) ||
            accepts_count(call, G_IDX, p.k)) &&
           accepts_count(call, BIAS, p.n);
}

/* Does the kernel read operand i from scratch? Floats that it need not change stay where they are.
 */
static bool is_copied(const struct cm_call *call, const struct nbits *p, int i)
{
    const struct cm_tensor *x = operand(call, i);
    return x && ((x->type != CM_FLOAT && x->type != CM_UINT8 && x->type != CM_INT32) ||
                 (i == A && p->rounds));
}

/* Without data. */
static struct cm_weight_product product_of(const struct nbits *p, const struct cm_node *node)
{
    return (struct cm_weight_product){
        .w = {.n = p->n,
              .k = p->k,
              .bits = p->bits,
              .block = p->block,
              .blocks = p->blocks,
              .row_bytes = p->row_bytes,
              .zero_bytes = p->zero_bytes,
              .numbers = p->bnb4 ? cm_bnb4_numbers[cm_node_int(node, "quant_type")] : NULL},
        .stored = p->stored,
        .m = p->m};
}

static enum cm_status prepare(struct cm_call *call)
{
    struct nbits *p = cm_call_state(call, sizeof *p);
    int64_t floats, more;
    size_t bytes;
    if (!read_sizes(call, p))
        return cm_call_fail(call, CM_LIMIT, "its sizes are out of range");
    p->few = p->m < FEW || cm_this_machine() == CM_PLAIN;
    if (p->by_rows) {
        const struct cm_weight_product product = product_of(p, call->node);
        if (!cm_weight_product_scratch(&product, &floats))
            return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    } else if (p->few) {
        if (!cm_dim_mul(p->m, p->blocks * p->block, &floats) ||
            !cm_dim_mul(p->m, p->blocks, &more) || !cm_dim_add(floats, more, &floats))
            return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
        p->sums = (size_t)(floats - more) * sizeof(float);
    } else {
        p->parts = (p->n + WIDTH - 1) / WIDTH;
        p->parts = p->parts > MOST_PARTS ? MOST_PARTS : p->parts;
        p->part_floats = (p->blocks * p->block + ROWS) * WIDTH;
        if (!cm_dim_mul(p->parts, p->part_floats, &floats))
            return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    }
    p->rounds = !p->bnb4 && cm_nbits_rounds(call->node);
    for (int i = 0; i <= BIAS; i++) {
        p->floats[i] = (size_t)floats * sizeof(float);
        if (is_copied(call, p, i) &&
            !cm_dim_add(floats, cm_tensor_count(operand(call, i)), &floats))
            return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    }
    p->y = (size_t)floats * sizeof(float);
    more = call->out[0]->type != CM_FLOAT ? cm_tensor_count(call->out[0]) : 0;
    if (!cm_dim_add(floats, more, &floats) || !cm_dtype_bytes(CM_FLOAT, floats, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static float *in_scratch(const struct cm_call *call, size_t at)
{
    return (float *)(void *)((char *)call->scratch + at);
}

/* Operand i as floats, NULL: it is absent. */
static const float *floats_of(const struct cm_call *call, int i)
{
    const struct nbits *p = call->state;
    const struct cm_tensor *x = operand(call, i);
    return !x ? NULL : is_copied(call, p, i) ? in_scratch(call, p->floats[i]) : x->data;
}

static float *result_of(const struct cm_call *call)
{
    const struct nbits *p = call->state;
    return call->out[0]->type == CM_FLOAT ? call->out[0]->data : in_scratch(call, p->y);
}

static struct cm_weight_codes weights_of(const struct cm_call *call)
{
    const struct cm_tensor *zeros = operand(call, ZEROS), *g_idx = operand(call, G_IDX);
    const bool coded = zeros && zeros->type == CM_UINT8;
    struct cm_weight_codes w = product_of(call->state, call->node).w;
    w.codes = call->in[B]->data;
    w.scales = floats_of(call, SCALES);
    w.zero_codes = coded ? zeros->data : NULL;
    w.zeros = coded ? NULL : floats_of(call, ZEROS);
    w.groups = g_idx ? g_idx->data : NULL;
    return w;
}

/* ---- Few rows ---- */

/* Rows of A as codes meet them. Of four bits: of each block first the even elements, for the low
 * halves of bytes, then the odd ones. And what the elements of each block sum up to, negated; times
 * the zero point, where all have the same. */
static void split_rows(const struct cm_call *call, const struct nbits *p, float *to, float *sums)
{
    const int64_t half = p->bits == 4 ? p->block / 2 : p->block;
    const float factor = operand(call, ZEROS) ? -1 : -(float)(1 << (p->bits - 1));
    for (int64_t m = 0; m < p->m; m++) {
        const float *a = floats_of(call, A) + m * p->k;
        for (int64_t b = 0; b < p->blocks; b++, to += p->block, sums++) {
            float sum = 0;
            for (int64_t i = 0; i < p->block; i++) {
                const int64_t k = b * p->block + i;
                const float v = k < p->k ? a[k] : 0;
                if (p->bits == 4)
                    to[i / 2 + i % 2 * half] = v;
                else
                    to[i] = v;
                sum += v;
            }
            *sums = sum * factor;
        }
    }
}

/* One row of A times TOGETHER rows of weights. The sum over a block of a * (code - zero) is that of
 * a * code, less zero times that of a. */
struct coded_rows {
    const struct nbits *p;
    const float *a, *sums; /* as split_rows made them */
    const uint8_t *codes[TOGETHER];
    const float *scales[TOGETHER];
    const struct cm_weight_codes *w;
    int64_t rows[TOGETHER];
    float *results;
};

/* Where the sum of a block begins; differ: zero points, see differ_zeros. */
static CM_ALWAYS_INLINE float start_of(const struct coded_rows *c, bool differ, int i,
                                       int64_t block)
{
    return differ ? c->sums[block] * cm_weight_zero(c->w, c->rows[i], block) : c->sums[block];
}

/* Asked once, before the loops. */
static CM_ALWAYS_INLINE bool differ_zeros(const struct coded_rows *c)
{
    return c->w->zero_codes || c->w->zeros;
}

static void multiply_few_plain(const struct coded_rows *c)
{
    const struct nbits *p = c->p;
    const int64_t bytes = p->block * p->bits / 8;
    const bool differ = differ_zeros(c);
    for (int i = 0; i < TOGETHER; i++) {
        float totals[WIDTH] = {0};
        for (int64_t b = 0; b < p->blocks; b++) {
            const float *a = c->a + b * p->block;
            const uint8_t *codes = c->codes[i] + b * bytes;
            float s[WIDTH] = {start_of(c, differ, i, b)};
            for (int64_t at = 0; at < bytes; at += WIDTH)
                for (int l = 0; l < WIDTH; l++) {
                    const uint8_t code = codes[at + l];
                    if (p->bits == 8)
                        s[l] += a[at + l] * (float)code;
                    else
                        s[l] +=
                            a[at + l] * (float)(code & 15) + a[bytes + at + l] * (float)(code >> 4);
                }
            for (int l = 0; l < WIDTH; l++)
                totals[l] += c->scales[i][b] * s[l];
        }
        c->results[i] = 0;
        for (int l = 0; l < WIDTH; l++)
            c->results[i] += totals[l];
    }
}

#ifdef CM_FOR_AVX2
#include <immintrin.h>
/* Compilers take this apart into small registers. Bits are a constant where it is called. */
CM_FOR_AVX512 static CM_ALWAYS_INLINE void multiply_codes_avx512(int bits,
                                                                 const struct coded_rows *c)
{
    const struct nbits *p = c->p;
    const int64_t bytes = p->block * bits / 8;
    const bool differ = differ_zeros(c);
    const __m512i four = _mm512_set1_epi32(15);
    __m512 totals[TOGETHER];
    for (int i = 0; i < TOGETHER; i++)
        totals[i] = _mm512_setzero_ps();
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *a = c->a + b * p->block;
        _Pragma("GCC unroll 4") for (int i = 0; i < TOGETHER; i++)
        {
            const uint8_t *codes = c->codes[i] + b * bytes;
            const float start = start_of(c, differ, i, b);
            __m512 s = _mm512_zextps128_ps512(_mm_load_ss(&start));
            for (int64_t at = 0; at < bytes; at += WIDTH) {
                const __m512i code = _mm512_cvtepu8_epi32(
                    _mm_loadu_si128((const __m128i *)(const void *)(codes + at)));
                const __m512i low = bits == 4 ? _mm512_and_si512(code, four) : code;
                s = _mm512_fmadd_ps(_mm512_loadu_ps(a + at), _mm512_cvtepi32_ps(low), s);
                if (bits == 4)
                    s = _mm512_fmadd_ps(_mm512_loadu_ps(a + bytes + at),
                                        _mm512_cvtepi32_ps(_mm512_srli_epi32(code, 4)), s);
            }
            totals[i] = _mm512_fmadd_ps(_mm512_set1_ps(c->scales[i][b]), s, totals[i]);
        }
    }
    for (int i = 0; i < TOGETHER; i++)
        c->results[i] = _mm512_reduce_add_ps(totals[i]);
}

CM_FOR_AVX512 static void multiply_few_avx512(const struct coded_rows *c)
{
    if (c->p->bits == 4)
        multiply_codes_avx512(4, c);
    else
        multiply_codes_avx512(8, c);
}
#endif

static void multiply_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct nbits *p = call->state;
    const float *split = call->scratch;
    const float *sums = (const float *)(const void *)((const char *)call->scratch + p->sums);
    const struct cm_weight_codes w = weights_of(call);
    const float *bias = floats_of(call, BIAS);
    void (*multiply)(const struct coded_rows *) = multiply_few_plain;
#ifdef CM_FOR_AVX2
    if (cm_this_machine() == CM_AVX512)
        multiply = multiply_few_avx512;
#endif
    for (int64_t n = begin; n < end; n += TOGETHER)
        for (int64_t m = 0; m < p->m; m++) {
            float results[TOGETHER];
            struct coded_rows c = {.p = p,
                                   .a = split + m * p->blocks * p->block,
                                   .sums = sums + m * p->blocks,
                                   .w = &w,
                                   .results = results};
            for (int64_t i = 0; i < TOGETHER;
                 i++) { /* the last one again where there are no more */
                c.rows[i] = n + i < end ? n + i : end - 1;
                c.codes[i] = w.codes + c.rows[i] * p->row_bytes;
                c.scales[i] = w.scales + c.rows[i] * p->blocks;
            }
            multiply(&c);
            for (int64_t i = 0; i < TOGETHER && n + i < end; i++)
                result_of(call)[m * p->n + n + i] = results[i] + (bias ? bias[n + i] : 0);
        }
}

/* ---- More rows ---- */

struct panel_work {
    const struct cm_call *call;
    int64_t first;       /* row of weights */
    float *panel, *tile; /* scratch */
};

/* Bytes of WIDTH rows side by side, as floats. */
struct turned_bytes {
    uint8_t bytes[WIDTH][WIDTH]; /* byte i of each row */
    float scales[WIDTH], zeros[WIDTH];
};

static void widen_bytes_plain(int64_t bits, const struct turned_bytes *t, float *to)
{
    for (int i = 0; i < WIDTH; i++, to += 8 / bits * WIDTH)
        for (int j = 0; j < WIDTH; j++) {
            const uint8_t code = t->bytes[i][j];
            to[j] = ((float)(bits == 4 ? code & 15 : code) - t->zeros[j]) * t->scales[j];
            if (bits == 4)
                to[WIDTH + j] = ((float)(code >> 4) - t->zeros[j]) * t->scales[j];
        }
}

#ifdef CM_FOR_AVX2
CM_FOR_AVX512 static void widen_bytes_avx512(int64_t bits, const struct turned_bytes *t, float *to)
{
    const __m512 scale = _mm512_loadu_ps(t->scales), zero = _mm512_loadu_ps(t->zeros);
    for (int i = 0; i < WIDTH; i++, to += 8 / bits * WIDTH) {
        const __m512i code =
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)t->bytes[i]));
        const __m512i low = bits == 4 ? _mm512_and_si512(code, _mm512_set1_epi32(15)) : code;
        _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(low), zero), scale));
        if (bits == 4)
            _mm512_storeu_ps(
                to + WIDTH,
                _mm512_mul_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(code, 4)), zero),
                              scale));
    }
}
#endif

/* WIDTH rows of weights as floats, one beside the other. */
static void widen(const struct panel_work *w)
{
    const struct cm_call *call = w->call;
    const struct nbits *p = call->state;
    const struct cm_weight_codes from = weights_of(call);
    const int64_t bytes = p->block * p->bits / 8;
    void (*widen_bytes)(int64_t, const struct turned_bytes *, float *) = widen_bytes_plain;
#ifdef CM_FOR_AVX2
    if (cm_this_machine() == CM_AVX512)
        widen_bytes = widen_bytes_avx512;
#endif
    for (int64_t b = 0; b < p->blocks; b++) {
        struct turned_bytes t;
        const uint8_t *codes[WIDTH];
        for (int j = 0; j < WIDTH; j++) { /* the last one again where there are no more */
            const int64_t row = w->first + j < p->n ? w->first + j : p->n - 1;
            t.scales[j] = from.scales[row * p->blocks + b];
            t.zeros[j] = cm_weight_zero(&from, row, b);
            codes[j] = from.codes + row * p->row_bytes + b * bytes;
        }
        for (int64_t first = 0; first < bytes; first += WIDTH) {
            for (int j = 0; j < WIDTH; j++)
                for (int i = 0; i < WIDTH; i++)
                    t.bytes[i][j] = codes[j][first + i];
            widen_bytes(p->bits, &t, w->panel + (b * p->block + first * 8 / p->bits) * WIDTH);
        }
    }
}

static CM_ALWAYS_INLINE void multiply_panel_on(enum cm_machine machine, const struct panel_work *w)
{
    const struct cm_call *call = w->call;
    const struct nbits *p = call->state;
    const float *bias = floats_of(call, BIAS);
    const int64_t columns = p->n - w->first < WIDTH ? p->n - w->first : WIDTH;
    widen(w);
    for (int64_t m = 0; m < p->m; m += ROWS) {
        const int64_t rows = p->m - m < ROWS ? p->m - m : ROWS;
        const float *a[ROWS];
        for (int64_t r = 0; r < ROWS; r++)
            a[r] = floats_of(call, A) + (m + (r < rows ? r : rows - 1)) * p->k;
        tile(machine, false, p->k, a, 1, w->panel, WIDTH, w->tile, WIDTH);
        for (int64_t r = 0; r < rows; r++) {
            float *y = result_of(call) + (m + r) * p->n + w->first;
            for (int64_t j = 0; j < columns; j++)
                y[j] = w->tile[r * WIDTH + j] + (bias ? bias[w->first + j] : 0);
        }
    }
}
CM_BUILDS(multiply_panel, (const struct panel_work *w), (machine, w))
CM_CALL_BUILDS(multiply_panel, (const struct panel_work *w), (w))

static void multiply_panels(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct nbits *p = call->state;
    for (int64_t part = begin; part < end; part++) {
        struct panel_work w = {.call = call,
                               .panel = (float *)call->scratch + part * p->part_floats};
        w.tile = w.panel + p->blocks * p->block * WIDTH;
        for (w.first = part * WIDTH; w.first < p->n; w.first += p->parts * WIDTH)
            multiply_panel(&w);
    }
}

static void run_by_rows(struct cm_call *call)
{
    struct cm_weight_product product = product_of(call->state, call->node);
    product.w = weights_of(call);
    product.a = floats_of(call, A);
    product.bias = floats_of(call, BIAS);
    product.y = result_of(call);
    product.scratch = call->scratch;
    cm_weight_product_run(&product);
}

static enum cm_status run(struct cm_call *call)
{
    const struct nbits *p = call->state;
    if (operand(call, G_IDX))
        CM_TRY(cm_nbits_check_groups(call, operand(call, G_IDX), p->blocks));
    for (int i = 0; i <= BIAS; i++)
        if (is_copied(call, p, i))
            cm_line_load(cm_line_at(operand(call, i), 0), 1, cm_tensor_count(operand(call, i)),
                         CM_FLOAT, in_scratch(call, p->floats[i]));
    if (p->rounds)
        cm_nbits_round(floats_of(call, A), p->m, p->k, p->block, in_scratch(call, p->floats[A]));
    if (p->by_rows) {
        run_by_rows(call);
    } else if (!p->few) {
        cm_parallel(p->parts, 1, multiply_panels, call);
    } else {
        split_rows(call, p, call->scratch, in_scratch(call, p->sums));
        cm_parallel(p->n, GRAIN, multiply_rows, call);
    }
    if (call->out[0]->type != CM_FLOAT)
        cm_line_save(cm_line_at(call->out[0], 0), 1, cm_tensor_count(call->out[0]), CM_FLOAT,
                     result_of(call));
    return CM_OK;
}

CM_KERNEL_IN(cpu, "com.microsoft", MatMulNBits, .label = "packed-weight product",
             .accepts = accepts, .prepare = prepare, .run = run);
CM_KERNEL_IN(cpu, "com.microsoft", MatMulBnb4, .label = "packed-weight product", .accepts = accepts,
             .prepare = prepare, .run = run);
