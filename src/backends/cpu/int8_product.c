/* Packing, tiles and what becomes of their sums. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_product.h"

#include "backends/cpu/int8_tiles.h"
#include "base/number.h"
#include "base/parallel.h"
#include "tensor/vector_math.h"

/* ---- Packing ---- */

static bool same_packing(const struct cm_layout *a, const struct cm_layout *b)
{
    const struct cm_int8_packing *p = (const struct cm_int8_packing *)(const void *)a;
    const struct cm_int8_packing *q = (const struct cm_int8_packing *)(const void *)b;
    return p->batches == q->batches && p->columns == q->columns && p->taps == q->taps &&
           p->depth == q->depth && p->batch_stride == q->batch_stride &&
           p->column_stride == q->column_stride && p->depth_stride == q->depth_stride &&
           p->tap_stride == q->tap_stride && p->is_unsigned == q->is_unsigned &&
           p->dense == q->dense && p->by_tap == q->by_tap;
}

struct packing_job {
    const struct cm_int8_packing *p;
    const uint8_t *from;
    char *to;
};

/* One panel, and the sums of its columns. */
static void pack_panel(const struct packing_job *job, int64_t batch, int64_t panel)
{
    const struct cm_int8_packing *p = job->p;
    const uint8_t flip = p->is_unsigned ? 0x80 : 0;
    char *at = job->to + batch * p->batch_bytes;
    int32_t *sums = (int32_t *)(void *)at + panel * INT8_PANEL;
    int8_t *to = (int8_t *)at + p->padded * (int64_t)sizeof *sums + panel * p->panel_bytes;
    const int64_t first = panel * INT8_PANEL;
    const int64_t columns = p->columns - first < INT8_PANEL ? p->columns - first : INT8_PANEL;
    const uint8_t *from = job->from + batch * p->batch_stride + first * p->column_stride;
    memset(sums, 0, INT8_PANEL * sizeof *sums);
    memset(to, 0, (size_t)p->panel_bytes);
    const int64_t tap_rows = p->panel_bytes / INT8_PANEL / p->taps; /* unless dense */
    for (int64_t tap = 0; tap < p->taps; tap++)
        for (int64_t d = 0; d < p->depth; d++) {
            const uint8_t *row = from + tap * p->tap_stride + d * p->depth_stride;
            const int64_t at = tap * (p->dense ? p->depth : tap_rows) + d;
            int8_t *group = to + at / INT8_GROUP * INT8_GROUP * INT8_PANEL + at % INT8_GROUP;
            for (int64_t j = 0; j < columns; j++) {
                const int8_t v = (int8_t)(row[j * p->column_stride] ^ flip);
                group[j * INT8_GROUP] = v;
                sums[j] += v;
            }
        }
}

static void pack_taps(const struct packing_job *job)
{
    const struct cm_int8_packing *p = job->p;
    const uint8_t flip = p->is_unsigned ? 0x80 : 0;
    int32_t *sums = (int32_t *)(void *)job->to;
    int8_t *to = (int8_t *)job->to + p->padded * (int64_t)sizeof *sums;
    memset(job->to, 0, p->layout.bytes);
    for (int64_t tap = 0; tap < p->taps; tap++, to += p->listed)
        for (int64_t j = 0; j < p->columns; j++) {
            to[j] = (int8_t)(job->from[j * p->column_stride + tap * p->tap_stride] ^ flip);
            sums[j] += to[j];
        }
}

static void pack_some(void *arg, int64_t begin, int64_t end)
{
    const struct packing_job *job = arg;
    const int64_t panels = job->p->padded / INT8_PANEL;
    for (int64_t i = begin; i < end; i++)
        pack_panel(job, i / panels, i % panels);
}

static enum cm_status pack(const struct cm_tensor *from, struct cm_tensor *to, struct cm_error *err)
{
    const struct cm_int8_packing *p = (const struct cm_int8_packing *)(const void *)to->layout;
    if (!p)
        return cm_fail(err, CM_UNSUPPORTED, "packed weights are not unpacked");
    struct packing_job job = {.p = p, .from = from->data, .to = to->data};
    if (p->by_tap)
        pack_taps(&job);
    else
        cm_parallel(p->batches * (p->padded / INT8_PANEL), 4, pack_some, &job);
    return CM_OK;
}

bool cm_int8_packing_init(struct cm_int8_packing *p)
{
    int64_t rows, panels, bytes;
    size_t all;
    const int64_t runs = p->dense ? 1 : p->taps;
    if (p->columns > INT32_MAX || p->depth > INT32_MAX || p->taps > INT32_MAX)
        return false;
    p->padded = (int64_t)cm_round_up((size_t)p->columns, INT8_PANEL);
    p->listed = (int64_t)cm_round_up((size_t)p->columns, INT8_WIDTH);
    if (!cm_dim_mul(p->depth, p->dense ? p->taps : 1, &rows) || rows > INT32_MAX ||
        !cm_dim_mul((int64_t)cm_round_up((size_t)rows, INT8_GROUP), runs, &rows) ||
        !cm_dim_mul(rows, INT8_PANEL, &p->panel_bytes) ||
        !cm_dim_mul(p->panel_bytes, p->padded / INT8_PANEL, &panels) ||
        !cm_dim_add(panels, p->padded * (int64_t)sizeof(int32_t), &p->batch_bytes) ||
        !cm_dim_mul(p->batch_bytes, p->batches, &bytes) || !cm_dtype_bytes(CM_UINT8, bytes, &all))
        return false;
    if (p->by_tap) { /* the sums of all columns, then a row for each tap */
        if (!cm_dim_mul(p->taps, p->listed, &bytes) ||
            !cm_dim_add(bytes, p->padded * (int64_t)sizeof(int32_t), &bytes) ||
            !cm_dtype_bytes(CM_UINT8, bytes, &all))
            return false;
        p->batch_bytes = bytes;
    }
    p->layout = (struct cm_layout){.name = "int8 panels",
                                   .bytes = all,
                                   .size = sizeof *p,
                                   .same = same_packing,
                                   .reorder = pack};
    return true;
}

void cm_int8_offsets(const struct cm_int8_packing *p, const void *packed, int32_t zero_a,
                     const int32_t *zeros, const int32_t *added, int32_t *offsets)
{
    const int32_t *sums = packed;
    const uint32_t zero = (uint32_t)zero_a, all = zero * (uint32_t)(p->taps * p->depth);
    for (int64_t j = p->padded; j < p->listed; j++)
        offsets[j] = 0;
    for (int64_t j = 0; j < p->padded; j++)
        offsets[j] = (int32_t)((zeros ? all * (uint32_t)zeros[j] : 0) - zero * (uint32_t)sums[j]);
    for (int64_t j = 0; added && j < p->columns; j++)
        offsets[j] = (int32_t)((uint32_t)offsets[j] + (uint32_t)added[j]);
}

void cm_int8_flip(int64_t count, const uint8_t *from, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] ^ 0x80;
}

/* ---- Tiles ---- */

enum { PLAIN_TILES, AVX2_TILES, VNNI_TILES, TILES };
enum { ROW_FORMS = 4 }; /* 1, 2, 4 and 8 rows */

#define TILE(attribute, set, rows, panels)                                                         \
    attribute static void set##_##rows##x##panels(const struct int8_tile *t)                       \
    {                                                                                              \
        int8_tile_##set(rows, panels, t);                                                          \
    }
#define TILE_FORMS(attribute, set)                                                                 \
    TILE(attribute, set, 1, 1)                                                                     \
    TILE(attribute, set, 1, 2)                                                                     \
    TILE(attribute, set, 2, 1)                                                                     \
    TILE(attribute, set, 2, 2)                                                                     \
    TILE(attribute, set, 4, 1)                                                                     \
    TILE(attribute, set, 4, 2)                                                                     \
    TILE(attribute, set, 8, 1)                                                                     \
    TILE(attribute, set, 8, 2)
#define TILE_ROW(set)                                                                              \
    {                                                                                              \
        {set##_1x1, set##_1x2}, {set##_2x1, set##_2x2}, {set##_4x1, set##_4x2},                    \
        {                                                                                          \
            set##_8x1, set##_8x2                                                                   \
        }                                                                                          \
    }
TILE_FORMS(, plain)
#ifdef CM_FOR_AVX2
TILE_FORMS(CM_FOR_AVX2, avx2)
TILE_FORMS(CM_FOR_VNNI, vnni)
static int8_tile_fn *const tiles[TILES][ROW_FORMS][INT8_PANELS] = {
    [PLAIN_TILES] = TILE_ROW(plain), [AVX2_TILES] = TILE_ROW(avx2), [VNNI_TILES] = TILE_ROW(vnni)};
#else
static int8_tile_fn *const tiles[TILES][ROW_FORMS][INT8_PANELS] = {[PLAIN_TILES] = TILE_ROW(plain),
                                                                   [AVX2_TILES] = TILE_ROW(plain),
                                                                   [VNNI_TILES] = TILE_ROW(plain)};
#endif

static int tiles_of(enum cm_machine machine)
{
#ifdef CM_FOR_AVX2
    if (machine == CM_AVX512 && __builtin_cpu_supports("avx512vnni") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return VNNI_TILES;
#endif
    return machine == CM_PLAIN ? PLAIN_TILES : AVX2_TILES;
}

/* ---- What becomes of sums ---- */

/* Codes of numbers: the limits are set before rounding, where NaN becomes the lowest. Within them,
 * adding 1.5 * 2^23 rounds half to even and leaves the integer in the low bits. */
#define DEFINE_CODES(name, ctype, least, greatest)                                                 \
    static CM_ALWAYS_INLINE void codes_##name(const float *v, float zero, void *to)                \
    {                                                                                              \
        const float low = (float)(least)-zero, high = (float)(greatest)-zero;                      \
        const int32_t shift = (int32_t)zero - 0x4b400000;                                          \
        ctype *y = to;                                                                             \
        for (int j = 0; j < INT8_WIDTH; j++) {                                                     \
            float x = v[j];                                                                        \
            x = x > low ? x : low;                                                                 \
            x = x < high ? x : high;                                                               \
            y[j] = (ctype)((int32_t)cm_float_bits(x + 12582912.0f) + shift);                       \
        }                                                                                          \
    }
DEFINE_CODES(uint8, uint8_t, 0, UINT8_MAX)
DEFINE_CODES(int8, int8_t, INT8_MIN, INT8_MAX)

static CM_ALWAYS_INLINE void finish_on(enum cm_machine machine, const struct cm_int8_sums *t)
{
    const struct cm_int8_finish *f = t->finish;
    const size_t width = f->type == CM_INT32 || f->type == CM_FLOAT ? 4 : 1;
    (void)machine;
    for (int r = 0; r < t->rows; r++) {
        int32_t *sums = t->sums + r * INT8_WIDTH;
        char *y = t->y + r * t->y_row;
        float v[INT8_WIDTH];
        uint8_t codes[INT8_WIDTH];
        const void *from = sums;
        for (int j = 0; f->offsets && j < INT8_WIDTH; j++)
            sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)f->offsets[t->from + j]);
        if (t->row_sums) {
            const uint32_t all = (uint32_t)t->row_sums[r];
            for (int j = 0; j < INT8_WIDTH; j++)
                sums[j] = (int32_t)((uint32_t)sums[j] - all * (uint32_t)f->zeros[t->from + j]);
        }
        if (f->type != CM_INT32) {
            for (int j = 0; j < INT8_WIDTH; j++)
                v[j] = (float)sums[j] * f->scales[t->from + j];
            from = v;
        }
        if (f->type == CM_FLOAT && f->bias)
            for (int j = 0; j < INT8_WIDTH; j++)
                v[j] += f->bias[t->from + j];
        if (f->type == CM_UINT8)
            codes_uint8(v, f->zero, codes);
        if (f->type == CM_INT8)
            codes_int8(v, f->zero, codes);
        if (width == 1)
            from = codes;
        memcpy(y, from, (size_t)t->count * width);
    }
}
CM_BUILDS(finish, (const struct cm_int8_sums *t), (machine, t))

void cm_int8_finish_sums(const struct cm_int8_sums *sums)
{
    finish_builds[cm_this_machine()](sums);
}

static CM_ALWAYS_INLINE void sum_rows_on(enum cm_machine machine, const struct cm_int8_block *block,
                                         int32_t *sums)
{
    const struct cm_int8_packing *p = block->packing;
    (void)machine;
    const int64_t taps = p->dense ? 1 : p->taps, depth = p->depth * (p->dense ? p->taps : 1);
    for (int r = 0; r < block->rows; r++) {
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            const uint8_t *a = block->a[tap * INT8_ROWS + r];
            for (int64_t d = 0; d < depth; d++)
                sum += a[d];
        }
        sums[r] = (int32_t)sum;
    }
}
CM_BUILDS(sum_rows, (const struct cm_int8_block *block, int32_t *sums), (machine, block, sums))

void cm_int8_multiply(const struct cm_int8_block *block, int64_t from, int64_t to)
{
    const struct cm_int8_packing *p = block->packing;
    const enum cm_machine machine = cm_this_machine();
    const int form = block->rows > 4 ? 3 : block->rows > 2 ? 2 : block->rows - 1;
    const size_t width = block->finish->type == CM_INT32 || block->finish->type == CM_FLOAT ? 4 : 1;
    const int8_t *panels = (const int8_t *)block->packed + p->padded * (int64_t)sizeof(int32_t);
    int32_t sums[INT8_ROWS * INT8_WIDTH] = {0}, row_sums[INT8_ROWS];
    struct int8_tile tile = {.a = block->a,
                             .taps = p->dense ? 1 : p->taps,
                             .depth = p->depth * (p->dense ? p->taps : 1),
                             .panel_bytes = p->panel_bytes,
                             .sums = sums};
    struct cm_int8_sums end = {.finish = block->finish,
                               .rows = block->rows,
                               .row_sums = block->finish->zeros ? row_sums : NULL,
                               .sums = sums,
                               .y_row = block->y_row};
    if (block->finish->zeros)
        sum_rows_builds[machine](block, row_sums);
    for (int64_t j = from; j < to; j += INT8_WIDTH) {
        const int two = p->padded - j > INT8_PANEL;
        tile.b = panels + j / INT8_PANEL * p->panel_bytes;
        tiles[tiles_of(machine)][form][two](&tile);
        end.from = j;
        end.count = to - j < INT8_WIDTH ? to - j : INT8_WIDTH;
        end.y = block->y + j * (int64_t)width;
        finish_builds[machine](&end);
    }
}
