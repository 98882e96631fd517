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

#define FOR(name) name##_FLOAT
#define T         float
#define WIDE      float
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_DOUBLE
#define T         double
#define WIDE      double
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_INT8
#define T         int8_t
#define WIDE      uint32_t
#define LEAST     INT8_MIN
#define GREATEST  INT8_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_UINT8
#define T         uint8_t
#define WIDE      uint32_t
#define LEAST     0
#define GREATEST  UINT8_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_INT16
#define T         int16_t
#define WIDE      uint32_t
#define LEAST     INT16_MIN
#define GREATEST  INT16_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_UINT16
#define T         uint16_t
#define WIDE      uint32_t
#define LEAST     0
#define GREATEST  UINT16_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_INT32
#define T         int32_t
#define WIDE      uint32_t
#define LEAST     INT32_MIN
#define GREATEST  INT32_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_UINT32
#define T         uint32_t
#define WIDE      uint32_t
#define LEAST     0
#define GREATEST  UINT32_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_INT64
#define T         int64_t
#define WIDE      uint64_t
#define LEAST     INT64_MIN
#define GREATEST  INT64_MAX
#include "ops/common/gemm_type.inc"
#define FOR(name) name##_UINT64
#define T         uint64_t
#define WIDE      uint64_t
#define LEAST     0
#define GREATEST  UINT64_MAX
#include "ops/common/gemm_type.inc"

/* ---- tiles of what is computed in ---- */

#define FOR(name)   name##_FLOAT
#define WIDE        float
#define TOTAL       float
#define TO_TOTAL(x) (x)
#include "ops/common/gemm_tile.inc"
#define FOR(name)   name##_DOUBLE
#define WIDE        double
#define TOTAL       double
#define TO_TOTAL(x) (x)
#include "ops/common/gemm_tile.inc"
#define FOR(name)   name##_UINT32
#define WIDE        uint32_t
#define TOTAL       uint32_t
#define TO_TOTAL(x) (x)
#include "ops/common/gemm_tile.inc"
#define FOR(name)   name##_UINT64
#define WIDE        uint64_t
#define TOTAL       uint64_t
#define TO_TOTAL(x) (x)
#include "ops/common/gemm_tile.inc"
/* KC products of codes, at most 255 * 255 each, sum to less than 2^24: floats hold that exactly,
 * and multiply faster than integers of 32 bits do on the smallest targets. */
#define FOR(name)   name##_CODES
#define WIDE        float
#define TOTAL       uint32_t
#define TO_TOTAL(x) ((uint32_t)(int32_t)(x))
#include "ops/common/gemm_tile.inc"

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

#define RULES(TAG, in)                                                                             \
    {                                                                                              \
        IN_##in, load_##TAG, finish_##TAG                                                          \
    }

static const struct rules rules_of[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = RULES(FLOAT, FLOAT),
    [CM_DOUBLE] = RULES(DOUBLE, DOUBLE),
    [CM_INT8] = RULES(INT8, UINT32),
    [CM_UINT8] = RULES(UINT8, UINT32),
    [CM_INT16] = RULES(INT16, UINT32),
    [CM_UINT16] = RULES(UINT16, UINT32),
    [CM_INT32] = RULES(INT32, UINT32),
    [CM_UINT32] = RULES(UINT32, UINT32),
    [CM_INT64] = RULES(INT64, UINT64),
    [CM_UINT64] = RULES(UINT64, UINT64),
    [CM_FLOAT16] = {IN_FLOAT, load_narrow, finish_narrow},
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
