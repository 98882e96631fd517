/* Packing, tiles and what becomes of their sums. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_product.h"

#include "backends/cpu/int8_depthwise.h"
#include "base/number.h"
#include "base/parallel.h"
#include "kernels/host/int8_tiles.h"
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

/* Four elements of a column side by side; their sum. */
static CM_ALWAYS_INLINE int32_t pack_four(const uint8_t *from, int64_t stride, uint32_t flip,
                                          int8_t *to)
{
    const uint32_t four = ((uint32_t)from[0] | (uint32_t)from[stride] << 8 |
                           (uint32_t)from[2 * stride] << 16 | (uint32_t)from[3 * stride] << 24) ^
                          flip;
    memcpy(to, &four, sizeof four);
    return (int8_t)four + (int8_t)(four >> 8) + (int8_t)(four >> 16) + (int8_t)(four >> 24);
}

/* Whole groups of one tap, in the order in which they lie in memory. */
static void pack_groups(const struct cm_int8_packing *p, const uint8_t *from, int64_t columns,
                        int64_t depth, int8_t *to, int32_t *sums)
{
    const uint32_t flip = p->is_unsigned ? 0x80808080 : 0;
    const int64_t of_column = p->column_stride, of_depth = p->depth_stride;
    int32_t all[INT8_PANEL] = {0};
    if (of_column == 1 && columns == INT8_PANEL) {
        for (int64_t d = 0; d < depth; d += INT8_GROUP)
            for (int64_t j = 0; j < INT8_PANEL; j++)
                all[j] += pack_four(from + d * of_depth + j, of_depth, flip,
                                    to + d * INT8_PANEL + j * INT8_GROUP);
    } else {
        for (int64_t j = 0; j < columns; j++)
            for (int64_t d = 0; d < depth; d += INT8_GROUP)
                all[j] += pack_four(from + d * of_depth + j * of_column, of_depth, flip,
                                    to + d * INT8_PANEL + j * INT8_GROUP);
    }
    for (int64_t j = 0; j < columns; j++)
        sums[j] += all[j];
}

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
    const int64_t grouped = p->dense && p->taps > 1 ? 0 : p->depth - p->depth % INT8_GROUP;
    for (int64_t tap = 0; tap < p->taps; tap++) {
        pack_groups(p, from + tap * p->tap_stride, columns, grouped,
                    to + tap * tap_rows * INT8_PANEL, sums);
        for (int64_t d = grouped; d < p->depth; d++) {
            const uint8_t *row = from + tap * p->tap_stride + d * p->depth_stride;
            const int64_t k = tap * (p->dense ? p->depth : tap_rows) + d;
            int8_t *group = to + k / INT8_GROUP * INT8_GROUP * INT8_PANEL + k % INT8_GROUP;
            for (int64_t j = 0; j < columns; j++) {
                const int8_t v = (int8_t)(row[j * p->column_stride] ^ flip);
                group[j * INT8_GROUP] = v;
                sums[j] += v;
            }
        }
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
        cm_int8_taps_pack(p, from->data, to->data);
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
    if (p->by_tap) { /* the sums of all columns, then the weights */
        if (!cm_int8_taps_bytes(p->taps, p->columns, &bytes) ||
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

/* ---- Operands ---- */

static bool accepts_one(struct cm_call *call, int i)
{
    const struct cm_tensor *p = cm_int8_operand(call, i);
    return !p || cm_tensor_count(p) == 1 ||
           cm_call_decline(call, "operand %d is not one number", i);
}

bool cm_int8_accepts(struct cm_call *call, const struct cm_int8_operands *at)
{
    const struct cm_tensor *a = call->in[at->a], *b = call->in[at->b], *y = call->out[0];
    if (!cm_int8_is_byte(a->type) || !cm_int8_is_byte(b->type))
        return cm_call_decline_type(call, cm_int8_is_byte(a->type) ? b : a);
    if (y->type != CM_INT32 && y->type != CM_FLOAT && !cm_int8_is_byte(y->type))
        return cm_call_decline_type(call, y);
    if (cm_tensor_count(y) == 0 || cm_tensor_count(a) == 0 || cm_tensor_count(b) == 0)
        return cm_call_decline(call, "an operand or the result is empty");
    return accepts_one(call, at->a_zero) && accepts_one(call, at->a_scale) &&
           accepts_one(call, at->y_scale) && accepts_one(call, at->y_zero);
}

int32_t cm_int8_zero_of(const struct cm_tensor *zero, bool is_unsigned, int64_t column)
{
    const int32_t z =
        zero ? (int32_t)cm_tensor_int(zero, cm_tensor_count(zero) == 1 ? 0 : column) : 0;
    return is_unsigned ? z - 128 : z;
}

bool cm_int8_reserve(int64_t count, int64_t each, enum cm_dtype type, size_t *end, size_t *at)
{
    size_t bytes;
    int64_t all;
    *at = *end;
    return cm_dim_mul(count, each, &all) && cm_dtype_bytes(type, all, &bytes) &&
           bytes < SIZE_MAX / 2 && cm_size_add(*end, cm_round_up(bytes, CM_TENSOR_ALIGNMENT), end);
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

struct flip_job {
    const uint8_t *from;
    uint8_t *to;
};

static void flip_some(void *arg, int64_t begin, int64_t end)
{
    const struct flip_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->to[i] = job->from[i] ^ 0x80;
}

void cm_int8_flip(int64_t count, const uint8_t *from, uint8_t *to)
{
    enum { GRAIN = 1 << 16 };
    cm_parallel(count, GRAIN, flip_some, &(struct flip_job){from, to});
}

/* ---- Tiles ---- */

typedef void int8_tile_fn(int rows, int panels, const struct int8_tile *t);

#ifdef CM_FOR_AVX2
/* Loops that are written out need constants. Rows beyond those that count are computed in vain. */
CM_FOR_VNNI static void int8_tile_any_vnni(int rows, int panels, const struct int8_tile *t)
{
    if (rows > 4 && panels > 1)
        int8_tile_vnni(8, 2, t);
    else if (rows > 4)
        int8_tile_vnni(8, 1, t);
    else if (rows > 1 && panels > 1)
        int8_tile_vnni(4, 2, t);
    else if (rows > 1)
        int8_tile_vnni(4, 1, t);
    else if (panels > 1)
        int8_tile_vnni(1, 2, t);
    else
        int8_tile_vnni(1, 1, t);
}
#endif

bool cm_int8_has_vnni(enum cm_machine machine)
{
#ifdef CM_FOR_AVX2
    return machine == CM_AVX512 && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    (void)machine;
    return false;
#endif
}

static int8_tile_fn *tile_of(enum cm_machine machine)
{
#ifdef CM_FOR_AVX2
    if (cm_int8_has_vnni(machine))
        return int8_tile_any_vnni;
    if (machine != CM_PLAIN)
        return int8_tile_avx2;
#endif
    (void)machine;
    return int8_tile_plain;
}

/* ---- What becomes of sums ---- */

/* Sums with all that is added to them. */
static CM_ALWAYS_INLINE void add_offsets(const struct cm_int8_sums *t, int row, int32_t *sums)
{
    const struct cm_int8_finish *f = t->finish;
    const int32_t *offsets = f->offsets + t->from;
    for (int j = 0; j < INT8_WIDTH; j++)
        sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)offsets[j]);
    if (!t->row_sums)
        return;
    const uint32_t all = (uint32_t)t->row_sums[row];
    const int32_t *zeros = f->zeros + t->from;
    for (int j = 0; j < INT8_WIDTH; j++)
        sums[j] = (int32_t)((uint32_t)sums[j] - all * (uint32_t)zeros[j]);
}

/* Codes of numbers: the limits are set before rounding, where NaN becomes the lowest. Within them,
 * adding 1.5 * 2^23 rounds half to even and leaves the integer in the low bits. */
static CM_ALWAYS_INLINE void make_codes(const struct cm_int8_sums *t, const int32_t *sums,
                                        uint8_t *y)
{
    const struct cm_int8_finish *f = t->finish;
    const float *scales = f->scales + t->from;
    const float least = f->type == CM_INT8 ? INT8_MIN : 0;
    const float low = least - f->zero, high = least + UINT8_MAX - f->zero;
    const int32_t shift = (int32_t)f->zero - 0x4b400000;
    for (int j = 0; j < INT8_WIDTH; j++) {
        float v = (float)sums[j] * scales[j];
        v = v > low ? v : low;
        v = v < high ? v : high;
        y[j] = (uint8_t)((int32_t)cm_float_bits(v + 12582912.0f) + shift);
    }
}

static CM_ALWAYS_INLINE void make_numbers(const struct cm_int8_sums *t, const int32_t *sums,
                                          float *y)
{
    const float *scales = t->finish->scales + t->from;
    for (int j = 0; j < INT8_WIDTH; j++)
        y[j] = (float)sums[j] * scales[j];
    if (!t->finish->bias)
        return;
    const float *bias = t->finish->bias + t->from;
    for (int j = 0; j < INT8_WIDTH; j++)
        y[j] += bias[j];
}

static CM_ALWAYS_INLINE void finish_on(enum cm_machine machine, const struct cm_int8_sums *t)
{
    const enum cm_dtype type = t->finish->type;
    const size_t width = type == CM_INT32 || type == CM_FLOAT ? 4 : 1;
    (void)machine;
    for (int r = 0; r < t->rows; r++) {
        int32_t *sums = t->sums + r * INT8_WIDTH;
        char *y = t->y + r * t->y_row;
        uint8_t codes[INT8_WIDTH];
        float numbers[INT8_WIDTH];
        add_offsets(t, r, sums);
        if (type == CM_INT32) {
            memcpy(y, sums, (size_t)t->count * width);
        } else if (type == CM_FLOAT) {
            make_numbers(t, sums, numbers);
            memcpy(y, numbers, (size_t)t->count * width);
        } else {
            make_codes(t, sums, codes);
            if (t->count == INT8_WIDTH)
                memcpy(y, codes, INT8_WIDTH);
            else
                memcpy(y, codes, (size_t)t->count);
        }
    }
}
CM_BUILDS(finish, (const struct cm_int8_sums *t), (machine, t))

/* Are results codes, of sums to which nothing but offsets is added? */
static bool makes_codes(const struct cm_int8_sums *t)
{
    return (t->finish->type == CM_UINT8 || t->finish->type == CM_INT8) && !t->row_sums;
}

static struct int8_codes codes_of(const struct cm_int8_sums *t)
{
    const struct cm_int8_finish *f = t->finish;
    const float least = f->type == CM_INT8 ? INT8_MIN : 0;
    return (struct int8_codes){.offsets = f->offsets + t->from,
                               .scales = f->scales + t->from,
                               .low = least - f->zero,
                               .high = least + UINT8_MAX - f->zero,
                               .zero = (int32_t)f->zero,
                               .rows = t->rows,
                               .count = t->count,
                               .y = t->y,
                               .y_row = t->y_row};
}

#ifdef CM_FOR_AVX2
/* The same for codes where no zero points of the right operand count. */
CM_FOR_VNNI static void finish_codes_vnni(const struct cm_int8_sums *t)
{
    const struct int8_codes codes = codes_of(t);
    for (int j = 0; j < t->count; j += INT8_PANEL)
        for (int r = 0; r < t->rows; r++)
            store_codes_vnni(&codes, r, j, _mm512_loadu_si512(t->sums + r * INT8_WIDTH + j));
}
#endif

void cm_int8_finish_sums(const struct cm_int8_sums *sums)
{
    const enum cm_machine machine = cm_this_machine();
#ifdef CM_FOR_AVX2
    if (cm_int8_has_vnni(machine) && makes_codes(sums)) {
        finish_codes_vnni(sums);
        return;
    }
#endif
    finish_builds[machine](sums);
}

/* The sum of each row of the left operand. */
static CM_ALWAYS_INLINE void sum_rows_on(enum cm_machine machine, const struct int8_tile *tile,
                                         int32_t *sums)
{
    (void)machine;
    for (int r = 0; r < INT8_ROWS; r++) {
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < tile->taps; tap++) {
            const uint8_t *a = tile->a[tap * INT8_ROWS + r];
            for (int64_t d = 0; d < tile->depth; d++)
                sum += a[d];
        }
        sums[r] = (int32_t)sum;
    }
}
CM_BUILDS(sum_rows, (const struct int8_tile *tile, int32_t *sums), (machine, tile, sums))

void cm_int8_multiply(const struct cm_int8_block *block, int64_t from, int64_t to)
{
    const struct cm_int8_packing *p = block->packing;
    const enum cm_machine machine = cm_this_machine();
    int8_tile_fn *const multiply = tile_of(machine);
    const int panels = p->padded - from > INT8_PANEL ? 2 : 1;
    const size_t width = block->finish->type == CM_INT32 || block->finish->type == CM_FLOAT ? 4 : 1;
    int32_t sums[INT8_ROWS * INT8_WIDTH] = {0}, row_sums[INT8_ROWS];
    struct int8_tile tile = {.a = block->a,
                             .taps = p->dense ? 1 : p->taps,
                             .depth = p->depth * (p->dense ? p->taps : 1),
                             .b = (const int8_t *)block->packed +
                                  p->padded * (int64_t)sizeof(int32_t) +
                                  from / INT8_PANEL * p->panel_bytes,
                             .panel_bytes = p->panel_bytes,
                             .sums = sums};
    struct cm_int8_sums end = {.finish = block->finish,
                               .from = from,
                               .count = to - from,
                               .row_sums = block->finish->zeros ? row_sums : NULL,
                               .sums = sums,
                               .y = block->y + from * (int64_t)width,
                               .y_row = block->y_row};
    struct int8_codes codes;
    if (cm_int8_has_vnni(machine) && makes_codes(&end)) {
        codes = codes_of(&end);
        tile.codes = &codes;
    }
    for (int r = 0; r < block->rows; r += INT8_ROWS) {
        codes.y = end.y;
        end.rows = block->rows - r < INT8_ROWS ? block->rows - r : INT8_ROWS;
        codes.rows = end.rows;
        multiply(end.rows, panels, &tile);
        if (end.row_sums)
            sum_rows_builds[machine](&tile, row_sums);
        if (!tile.codes)
            cm_int8_finish_sums(&end);
        tile.a += tile.taps * INT8_ROWS;
        end.y += INT8_ROWS * end.y_row;
    }
}
