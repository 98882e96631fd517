/* Blocked matrix product: panels of A and B are packed in the order the inner loop reads them,
 * converted to the type that is computed in, and a tile of C stays in scratch until all of k has
 * been added to it. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gemm.h"

#include "base/number.h"
#include "tensor/half.h"

enum {
    MR = 4, /* the inner tile: its sums fit the vector registers of the smallest target */
    NR = 8,
    MC = 96, /* multiples of MR and NR */
    NC = 256,
    KC = 256,
    CHUNK = 64, /* narrow elements converted at a time */
};

/* What is computed in. */
enum arithmetic { NO_ARITHMETIC, IN_FLOAT, IN_DOUBLE, IN_UINT32, IN_UINT64, IN_CODES };

typedef void load_fn(enum cm_dtype type, const void *data, int64_t at, int64_t step, int64_t count,
                     void *to, int64_t to_step);
typedef void tile_fn(int64_t k, const void *a, const void *b, void *c, int64_t width);
/* One row of the finished tile: scaled, added to, stored. */
typedef void finish_fn(const struct cm_gemm *g, int64_t count, const void *sums, int64_t add_at,
                       int64_t to_at);

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define GEMM_FLOATS(ROW)                                                                           \
    ROW(FLOAT, float, float, FLOAT)                                                                \
    ROW(DOUBLE, double, double, DOUBLE)
/* Least and greatest are there for results that alpha and beta push out of range. */
#define GEMM_INTEGERS(ROW)                                                                         \
    ROW(INT8, int8_t, uint32_t, UINT32, INT8_MIN, INT8_MAX)                                        \
    ROW(INT16, int16_t, uint32_t, UINT32, INT16_MIN, INT16_MAX)                                    \
    ROW(INT32, int32_t, uint32_t, UINT32, INT32_MIN, INT32_MAX)                                    \
    ROW(INT64, int64_t, uint64_t, UINT64, INT64_MIN, INT64_MAX)                                    \
    ROW(UINT8, uint8_t, uint32_t, UINT32, 0, UINT8_MAX)                                            \
    ROW(UINT16, uint16_t, uint32_t, UINT32, 0, UINT16_MAX)                                         \
    ROW(UINT32, uint32_t, uint32_t, UINT32, 0, UINT32_MAX)                                         \
    ROW(UINT64, uint64_t, uint64_t, UINT64, 0, UINT64_MAX)

#define DEFINE_LOAD(TAG, ctype, wide)                                                              \
    static void load_##TAG(enum cm_dtype type, const void *data, int64_t at, int64_t step,         \
                           int64_t count, void *to, int64_t to_step)                               \
    {                                                                                              \
        const ctype *x = (const ctype *)data + at;                                                 \
        wide *y = to;                                                                              \
        (void)type;                                                                                \
        if (step == 1 && to_step == 1)                                                             \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i] = (wide)x[i];                                                                 \
        else                                                                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i * to_step] = (wide)x[i * step];                                                \
    }

#define DEFINE_FLOAT_FINISH(TAG, ctype, wide, NAME)                                                \
    static void finish_##TAG(const struct cm_gemm *g, int64_t count, const void *sums,             \
                             int64_t add_at, int64_t to_at)                                        \
    {                                                                                              \
        const wide *s = sums, alpha = (wide)g->alpha, beta = (wide)g->beta;                        \
        const ctype *d = g->add.data;                                                              \
        ctype *y = (ctype *)g->c + to_at;                                                          \
        if (d)                                                                                     \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i * g->c_column] = alpha * s[i] + beta * d[add_at + i * g->add.column];          \
        else                                                                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                y[i * g->c_column] = alpha * s[i];                                                 \
    }

/* Factors of 1 wrap around; others go through double, and what is out of range becomes the nearest
 * number. */
#define DEFINE_INTEGER_FINISH(TAG, ctype, wide, NAME, least, greatest)                             \
    static void finish_##TAG(const struct cm_gemm *g, int64_t count, const void *sums,             \
                             int64_t add_at, int64_t to_at)                                        \
    {                                                                                              \
        const wide *s = sums;                                                                      \
        const ctype *d = g->add.data;                                                              \
        ctype *y = (ctype *)g->c + to_at;                                                          \
        const bool plain = g->alpha == 1 && (!d || g->beta == 1);                                  \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const wide term = d ? (wide)d[add_at + i * g->add.column] : 0;                         \
            if (plain) {                                                                           \
                y[i * g->c_column] = (ctype)(s[i] + term);                                         \
                continue;                                                                          \
            }                                                                                      \
            const double exact = g->alpha * (double)(ctype)s[i] + g->beta * (double)(ctype)term;   \
            y[i * g->c_column] = !(exact > (double)(least))    ? (ctype)(least)                    \
                                 : exact >= (double)(greatest) ? (ctype)(greatest)                 \
                                                               : (ctype)exact;                     \
        }                                                                                          \
    }

/* The inner tile: MR x NR sums over k of packed panels, kept in registers, added to the tile of C.
 */
#define AS_IS(x)      (x)
#define AS_INTEGER(x) ((uint32_t)(int32_t)(x))
#define DEFINE_TILE(NAME, wide, total, convert)                                                    \
    static void tile_##NAME(int64_t k, const void *panel_a, const void *panel_b, void *tile,       \
                            int64_t width)                                                         \
    {                                                                                              \
        const wide *a = panel_a, *b = panel_b;                                                     \
        wide s0[NR] = {0}, s1[NR] = {0}, s2[NR] = {0}, s3[NR] = {0};                               \
        for (int64_t p = 0; p < k; p++, a += MR, b += NR) {                                        \
            for (int j = 0; j < NR; j++) {                                                         \
                s0[j] += a[0] * b[j];                                                              \
                s1[j] += a[1] * b[j];                                                              \
                s2[j] += a[2] * b[j];                                                              \
                s3[j] += a[3] * b[j];                                                              \
            }                                                                                      \
        }                                                                                          \
        total *c = tile;                                                                           \
        for (int j = 0; j < NR; j++) {                                                             \
            c[j] += convert(s0[j]);                                                                \
            c[width + j] += convert(s1[j]);                                                        \
            c[2 * width + j] += convert(s2[j]);                                                    \
            c[3 * width + j] += convert(s3[j]);                                                    \
        }                                                                                          \
    }

/* sums += the products of one row of A with unpacked rows of B, for too few rows of A to pay for
 * packing. */
#define DEFINE_THIN(TAG, ctype, wide, NAME)                                                        \
    static void thin_##TAG(const struct cm_gemm *g, int64_t row, int64_t column, int64_t count,    \
                           void *sums)                                                             \
    {                                                                                              \
        const ctype *a = (const ctype *)g->a.data + g->a.first + row * g->a.row;                   \
        const ctype *b = (const ctype *)g->b.data + g->b.first + column;                           \
        ctype *s = sums, part[NC];                                                                 \
        memset(s, 0, (size_t)count * sizeof *s);                                                   \
        for (int64_t first = 0; first < g->k; first += KC) {                                       \
            memset(part, 0, (size_t)count * sizeof part[0]);                                       \
            for (int64_t p = first; p < least(first + KC, g->k); p++) {                            \
                const ctype x = a[p * g->a.column];                                                \
                const ctype *line = b + p * g->b.row;                                              \
                for (int64_t j = 0; j < count; j++)                                                \
                    part[j] += x * line[j];                                                        \
            }                                                                                      \
            for (int64_t j = 0; j < count; j++)                                                    \
                s[j] += part[j];                                                                   \
        }                                                                                          \
    }

#define FLOAT_LOAD(TAG, ctype, wide, NAME)                    DEFINE_LOAD(TAG, ctype, wide)
#define INTEGER_LOAD(TAG, ctype, wide, NAME, least, greatest) DEFINE_LOAD(TAG, ctype, wide)
GEMM_FLOATS(FLOAT_LOAD)
GEMM_INTEGERS(INTEGER_LOAD)
GEMM_FLOATS(DEFINE_FLOAT_FINISH)
GEMM_INTEGERS(DEFINE_INTEGER_FINISH)
GEMM_FLOATS(DEFINE_THIN)
DEFINE_TILE(FLOAT, float, float, AS_IS)
DEFINE_TILE(DOUBLE, double, double, AS_IS)
DEFINE_TILE(UINT32, uint32_t, uint32_t, AS_IS)
DEFINE_TILE(UINT64, uint64_t, uint64_t, AS_IS)
/* KC products of codes, at most 255 * 255 each, sum to less than 2^24: floats hold that exactly,
 * and multiply faster than integers of 32 bits do on the smallest targets. */
DEFINE_TILE(CODES, float, uint32_t, AS_INTEGER)

static void load_narrow(enum cm_dtype type, const void *data, int64_t at, int64_t step,
                        int64_t count, void *to, int64_t to_step)
{
    float *y = to;
    if (step != 1) {
        for (int64_t i = 0; i < count; i++)
            cm_narrow_load(type, data, at + i * step, 1, y + i * to_step);
        return;
    }
    float chunk[CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        const int64_t n = count - done < CHUNK ? count - done : CHUNK;
        cm_narrow_load(type, data, at + done, n, chunk);
        for (int64_t i = 0; i < n; i++)
            y[(done + i) * to_step] = chunk[i];
    }
}

static void finish_narrow(const struct cm_gemm *g, int64_t count, const void *sums, int64_t add_at,
                          int64_t to_at)
{
    const float *s = sums, alpha = (float)g->alpha, beta = (float)g->beta;
    float chunk[CHUNK], term[CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        const int64_t n = count - done < CHUNK ? count - done : CHUNK;
        if (g->add.data)
            load_narrow(g->type, g->add.data, add_at + done * g->add.column, g->add.column, n, term,
                        1);
        for (int64_t i = 0; i < n; i++)
            chunk[i] = g->add.data ? alpha * s[done + i] + beta * term[i] : alpha * s[done + i];
        if (g->c_column == 1) {
            cm_narrow_store(g->type, g->c, to_at + done, n, chunk);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            cm_narrow_store(g->type, g->c, to_at + (done + i) * g->c_column, 1, chunk + i);
    }
}

struct rules {
    enum arithmetic in;
    load_fn *load;
    finish_fn *finish;
};

#define FLOAT_RULES(TAG, ctype, wide, NAME) [CM_##TAG] = {IN_##NAME, load_##TAG, finish_##TAG},
#define INTEGER_RULES(TAG, ctype, wide, NAME, least, greatest)                                     \
    [CM_##TAG] = {IN_##NAME, load_##TAG, finish_##TAG},

static const struct rules rules_of[CM_DTYPE_COUNT] = {
    GEMM_FLOATS(FLOAT_RULES)
        GEMM_INTEGERS(INTEGER_RULES)[CM_FLOAT16] = {IN_FLOAT, load_narrow, finish_narrow},
    [CM_BFLOAT16] = {IN_FLOAT, load_narrow, finish_narrow},
};

static const struct {
    tile_fn *tile;
    size_t size;
} arithmetic_of[] = {
    [IN_FLOAT] = {tile_FLOAT, sizeof(float)},      [IN_DOUBLE] = {tile_DOUBLE, sizeof(double)},
    [IN_UINT32] = {tile_UINT32, sizeof(uint32_t)}, [IN_UINT64] = {tile_UINT64, sizeof(uint64_t)},
    [IN_CODES] = {tile_CODES, sizeof(uint32_t)},
};

static const struct rules code_rules = {IN_CODES, load_FLOAT, finish_INT32};

static const struct rules *rules_for(const struct cm_gemm *g)
{
    return g->of_codes ? &code_rules : &rules_of[g->type];
}

bool cm_gemm_has(enum cm_dtype type)
{
    return rules_of[type].in != NO_ARITHMETIC;
}

static size_t padded(int64_t size, int64_t limit, size_t unit)
{
    return cm_round_up((size_t)least(size, limit), unit);
}

/* Elements of the three parts of scratch: packed A, packed B, the tile of C. */
static void part_sizes(int64_t m, int64_t n, int64_t k, size_t *a, size_t *b, size_t *c)
{
    const size_t rows = padded(m, MC, MR), columns = padded(n, NC, NR), depth = padded(k, KC, 1);
    *a = cm_round_up(rows * depth, 16);
    *b = cm_round_up(columns * depth, 16);
    *c = rows * columns;
}

size_t cm_gemm_scratch(enum cm_dtype type, int64_t m, int64_t n, int64_t k)
{
    size_t a, b, c;
    part_sizes(m, n, k, &a, &b, &c);
    return (a + b + c) * arithmetic_of[rules_of[type].in].size;
}

/* Packs `lines` lines of `depth` elements into panels of `unit` lines, the lines of a panel
 * interleaved; missing lines are zeros. */
static void pack(const struct cm_gemm *g, const void *data, int64_t at, int64_t line_stride,
                 int64_t depth_stride, int64_t lines, int64_t depth, int unit, char *to)
{
    const struct rules *rules = rules_for(g);
    const size_t size = arithmetic_of[rules->in].size;
    for (int64_t line = 0; line < lines; line += unit) {
        const int64_t here = least(unit, lines - line), first = at + line * line_stride;
        if (here < unit)
            memset(to, 0, (size_t)(depth * unit) * size);
        if (line_stride == 1 && depth_stride != 1)
            for (int64_t p = 0; p < depth; p++)
                rules->load(g->type, data, first + p * depth_stride, 1, here,
                            to + (size_t)(p * unit) * size, 1);
        else
            for (int64_t i = 0; i < here; i++)
                rules->load(g->type, data, first + i * line_stride, depth_stride, depth,
                            to + (size_t)i * size, unit);
        to += (size_t)(depth * unit) * size;
    }
}

/* C's block at (row, column), rows x columns, summed over all of k. */
static void block(const struct cm_gemm *g, int64_t row, int64_t column, int64_t rows,
                  int64_t columns, char *scratch)
{
    const struct rules *rules = rules_for(g);
    const size_t size = arithmetic_of[rules->in].size;
    size_t size_a, size_b, size_c;
    part_sizes(g->m, g->n, g->k, &size_a, &size_b, &size_c);
    char *a = scratch, *b = a + size_a * size, *c = b + size_b * size;
    const int64_t width = (int64_t)cm_round_up((size_t)columns, NR);

    memset(c, 0, cm_round_up((size_t)rows, MR) * (size_t)width * size);
    for (int64_t p = 0; p < g->k; p += KC) {
        const int64_t depth = least(KC, g->k - p);
        pack(g, g->a.data, g->a.first + row * g->a.row + p * g->a.column, g->a.row, g->a.column,
             rows, depth, MR, a);
        pack(g, g->b.data, g->b.first + p * g->b.row + column * g->b.column, g->b.column, g->b.row,
             columns, depth, NR, b);
        for (int64_t j = 0; j < columns; j += NR)
            for (int64_t i = 0; i < rows; i += MR)
                arithmetic_of[rules->in].tile(depth, a + (size_t)(i * depth) * size,
                                              b + (size_t)(j * depth) * size,
                                              c + (size_t)(i * width + j) * size, width);
    }
    for (int64_t i = 0; i < rows; i++)
        rules->finish(g, columns, c + (size_t)(i * width) * size,
                      g->add.first + (row + i) * g->add.row + column * g->add.column,
                      g->c_first + (row + i) * g->c_row + column * g->c_column);
}

/* A row of C is summed NC columns at a time, which stay in the nearest cache. */
static void thin(const struct cm_gemm *g, void *scratch)
{
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j += NC) {
            const int64_t count = least(NC, g->n - j);
            (g->type == CM_FLOAT ? thin_FLOAT : thin_DOUBLE)(g, i, j, count, scratch);
            rules_of[g->type].finish(g, count, scratch,
                                     g->add.first + i * g->add.row + j * g->add.column,
                                     g->c_first + i * g->c_row + j * g->c_column);
        }
    }
}

void cm_gemm(const struct cm_gemm *g, void *scratch)
{
    if (g->m < MR && g->b.column == 1 && (g->type == CM_FLOAT || g->type == CM_DOUBLE)) {
        thin(g, scratch);
        return;
    }
    for (int64_t j = 0; j < g->n; j += NC)
        for (int64_t i = 0; i < g->m; i += MC)
            block(g, i, j, least(MC, g->m - i), least(NC, g->n - j), scratch);
}
