/* Rows of coded weights as floats, and their products. Few rows of A are multiplied with one row of
 * weights at a time; more of them lie side by side, 16 in a panel, and meet 8 rows of weights. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/coded_rows.h"

#include "backends/cpu/attention/attention_tiles.h"
#include "base/parallel.h"

#include <string.h>

enum {
    FEW = 8,             /* rows of A */
    LANES = 2 * WIDTH,   /* sums that grow side by side */
    COLUMNS = 2 * WIDTH, /* of weights as they are stored, at a time */
    BYTES = 256,         /* that there are */
};

struct job {
    const struct cm_weight_product *p;
    int64_t groups, parts, part_floats; /* what is shared out; pieces of work, scratch of each */
    const float *table;                 /* the numbers of each byte */
    float *panels, *parts_at;           /* in scratch: A, 16 rows side by side; the first part */
};

/* Where things are in scratch, which may be NULL; false: they are too large. */
static bool lay_out(const struct cm_weight_product *p, struct job *job, int64_t *floats)
{
    const struct cm_weight_codes *w = &p->w;
    const int64_t table = BYTES * (8 / w->bits), panel = w->k * WIDTH;
    const int64_t panels = p->stored || p->m < FEW ? 0 : (p->m + WIDTH - 1) / WIDTH;
    int64_t a, all;
    *job = (struct job){.p = p,
                        .groups =
                            p->stored ? (w->k + COLUMNS - 1) / COLUMNS : (w->n + ROWS - 1) / ROWS,
                        .part_floats = (p->stored ? w->n * COLUMNS : w->k * ROWS) + ROWS * WIDTH};
    job->parts = job->groups > MOST_PARTS ? MOST_PARTS : job->groups;
    if (!cm_dim_mul(panels, panel, &a) || !cm_dim_mul(job->parts, job->part_floats, &all) ||
        !cm_dim_add(all, a, &all) || !cm_dim_add(all, table, floats))
        return false;
    if (p->scratch) {
        job->table = p->scratch;
        job->panels = p->scratch + table;
        job->parts_at = job->panels + a;
    }
    return true;
}

bool cm_weight_product_scratch(const struct cm_weight_product *product, int64_t *floats)
{
    struct job job;
    return lay_out(product, &job, floats);
}

/* ---- rows of weights ---- */

static void fill_table(const struct cm_weight_codes *w, float *table)
{
    const int per = (int)(8 / w->bits), mask = (1 << w->bits) - 1;
    for (int byte = 0; byte < BYTES; byte++)
        for (int i = 0; i < per; i++) {
            const int first = (w->numbers ? per - 1 - i : i) * (int)w->bits;
            const int code = byte >> first & mask;
            *table++ = w->numbers ? w->numbers[code] : (float)code;
        }
}

/* Codes [at, at + count) as numbers; per: codes of a byte, a constant where this is called. */
static CM_ALWAYS_INLINE void decode(int64_t per, const float *table, const uint8_t *bytes,
                                    int64_t at, int64_t count, float *to)
{
    int64_t i = 0;
    for (; i < count && (at + i) % per; i++)
        to[i] = table[bytes[(at + i) / per] * per + (at + i) % per];
    const uint8_t *next = bytes + (at + i) / per;
    for (; i + per <= count; i += per, next++)
        memcpy(to + i, table + *next * per, (size_t)per * sizeof(float));
    for (int64_t k = 0; i < count; i++, k++)
        to[i] = table[*next * per + k];
}

/* How many columns from here on have the block of the first. */
static CM_ALWAYS_INLINE int64_t neighbours(const struct cm_weight_codes *w, int64_t at,
                                           const int32_t *groups, int64_t count)
{
    int64_t same = 1;
    if (!groups)
        return w->block - at % w->block < count ? w->block - at % w->block : count;
    while (same < count && groups[same] == *groups)
        same++;
    return same;
}

/* Columns [from, from + count) of a row. */
static CM_ALWAYS_INLINE void put_row(const struct job *job, int64_t row, int64_t from,
                                     int64_t count, float *to)
{
    const struct cm_weight_codes *w = &job->p->w;
    const uint8_t *bytes = w->codes + row * w->row_bytes;
    const int64_t first = (w->row_bytes ? 0 : row * w->k) + from;
    if (w->bits == 2)
        decode(4, job->table, bytes, first, count, to);
    else if (w->bits == 4)
        decode(2, job->table, bytes, first, count, to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)bytes[first + i];
    for (int64_t i = 0; i < count;) {
        const int32_t *groups = w->groups ? w->groups + from + i : NULL;
        const int64_t block = groups ? *groups : (first + i) / w->block;
        const int64_t end = i + neighbours(w, first + i, groups, count - i);
        const float zero = cm_weight_zero(w, row, block),
                    scale = w->scales[row * w->blocks + block];
        for (; i < end; i++)
            to[i] = (to[i] - zero) * scale;
    }
}

/* ---- products ---- */

static CM_ALWAYS_INLINE float dot(enum cm_machine machine, const float *a, const float *b,
                                  int64_t count)
{
    float sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] = cm_muladd(machine, a[i + l], b[i + l], sums[l]);
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    return sum;
}

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cm_weight_product *p = job->p;
    for (int64_t panel = begin; panel < end; panel++) {
        float *to = job->panels + panel * p->w.k * WIDTH;
        const float *from = p->a + panel * WIDTH * p->w.k;
        const int64_t rows = p->m - panel * WIDTH;
        for (int64_t k = 0; k < p->w.k; k++)
            for (int64_t r = 0; r < WIDTH; r++)
                *to++ = r < rows ? from[r * p->w.k + k] : 0;
    }
}

/* All rows of A times ROWS rows of weights. */
static CM_ALWAYS_INLINE void multiply_rows(enum cm_machine machine, const struct job *job,
                                           int64_t first, float *weights)
{
    const struct cm_weight_product *p = job->p;
    const int64_t k = p->w.k, n = p->w.n, rows = n - first < ROWS ? n - first : ROWS;
    const float *at[ROWS];
    float *tile_at = weights + ROWS * k, *y = p->y + first;
    for (int64_t r = 0; r < ROWS; r++) { /* the last one again where there are no more */
        at[r] = weights + (r < rows ? r : rows - 1) * k;
        if (r < rows)
            put_row(job, first + r, 0, k, weights + r * k);
    }
    for (int64_t m = 0; p->m < FEW && m < p->m; m++)
        for (int64_t r = 0; r < rows; r++)
            y[m * n + r] = dot(machine, p->a + m * k, at[r], k);
    for (int64_t m = 0; p->m >= FEW && m < p->m; m += WIDTH) {
        tile(machine, false, k, at, 1, job->panels + m * k, WIDTH, tile_at, WIDTH);
        for (int64_t j = 0; j < WIDTH && m + j < p->m; j++)
            for (int64_t r = 0; r < rows; r++)
                y[(m + j) * n + r] = tile_at[r * WIDTH + j];
    }
    for (int64_t m = 0; p->bias && m < p->m; m++)
        for (int64_t r = 0; r < rows; r++)
            y[m * n + r] += p->bias[first + r];
}

/* All rows of A times COLUMNS columns of weights. */
static CM_ALWAYS_INLINE void multiply_columns(enum cm_machine machine, const struct job *job,
                                              int64_t first, float *weights)
{
    const struct cm_weight_product *p = job->p;
    const int64_t k = p->w.k, n = p->w.n, columns = k - first < COLUMNS ? k - first : COLUMNS;
    float *tile_at = weights + n * COLUMNS;
    for (int64_t row = 0; row < n; row++) {
        float *to = weights + row * COLUMNS;
        put_row(job, row, first, columns, to);
        for (int64_t i = columns; i < COLUMNS; i++)
            to[i] = 0;
    }
    for (int64_t m = 0; m < p->m; m += ROWS) {
        const int64_t rows = p->m - m < ROWS ? p->m - m : ROWS;
        const float *a[ROWS];
        for (int64_t r = 0; r < ROWS; r++)
            a[r] = p->a + (m + (r < rows ? r : rows - 1)) * n;
        for (int64_t j = 0; j < columns; j += WIDTH) {
            const int64_t count = columns - j < WIDTH ? columns - j : WIDTH;
            tile(machine, false, n, a, 1, weights + j, COLUMNS, tile_at, WIDTH);
            for (int64_t r = 0; r < rows; r++)
                memcpy(p->y + (m + r) * k + first + j, tile_at + r * WIDTH,
                       (size_t)count * sizeof(float));
        }
    }
}

static CM_ALWAYS_INLINE void multiply_on(enum cm_machine machine, const struct job *job,
                                         int64_t part)
{
    float *weights = job->parts_at + part * job->part_floats;
    for (int64_t group = part; group < job->groups; group += job->parts)
        if (job->p->stored)
            multiply_columns(machine, job, group * COLUMNS, weights);
        else
            multiply_rows(machine, job, group * ROWS, weights);
}
CM_BUILDS(multiply, (const struct job *job, int64_t part), (machine, job, part))
CM_CALL_BUILDS(multiply, (const struct job *job, int64_t part), (job, part))

static void multiply_parts(void *arg, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++)
        multiply(arg, part);
}

void cm_weight_product_run(const struct cm_weight_product *product)
{
    struct job job;
    int64_t floats;
    if (!lay_out(product, &job, &floats))
        return; /* cm_weight_product_scratch said so */
    fill_table(&product->w, product->scratch);
    if (!product->stored && product->m >= FEW)
        cm_parallel((product->m + WIDTH - 1) / WIDTH, 1, turn_rows, &job);
    cm_parallel(job.parts, 1, multiply_parts, &job);
}
