/* Depthwise convolutions and the gradient of their kernels, row by row of results. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/depthwise.h"

#include "base/parallel.h"

#include <string.h>

/* Taps [begin, end) of a result lie inside. */
struct taps {
    int64_t begin, end;
};

static int64_t place(const struct cm_depthwise_sizes *s, int axis, int64_t result, int64_t tap)
{
    return result * s->stride[axis] - s->pad[axis] + tap * s->dilation[axis];
}

static struct taps inside(const struct cm_depthwise_sizes *s, int axis, int64_t result)
{
    struct taps t = {0, s->kernel[axis]};
    while (t.begin < t.end && place(s, axis, result, t.begin) < 0)
        t.begin++;
    while (t.begin < t.end && place(s, axis, result, t.end - 1) >= s->image[axis])
        t.end--;
    return t;
}

/* Results [*begin, *end) along a row have all their taps inside. */
static void find_inner(const struct cm_depthwise_sizes *s, int64_t *begin, int64_t *end)
{
    int64_t o = 0;
    while (o < s->result[1] && place(s, 1, o, 0) < 0)
        o++;
    *begin = o;
    while (o < s->result[1] && place(s, 1, o, s->kernel[1] - 1) < s->image[1])
        o++;
    *end = o;
}

/* ---- the convolution ---- */

void cm_depthwise_pack(int64_t channels, int64_t taps, const float *kernels, float *packed)
{
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < channels; c++)
            packed[t * channels + c] = kernels[c * taps + t];
}

struct convolving {
    const struct cm_depthwise_run *run;
    cm_depthwise_convolve_fn *convolve;
    int64_t rows_of_chunk, chunks_of_image;
    struct cm_depthwise_block block; /* what all chunks have in common */
};

/* Chunks of a few rows of results each. */
static void convolve_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct convolving *v = arg;
    const struct cm_depthwise_run *run = v->run;
    const struct cm_depthwise_sizes *s = &run->sizes;
    struct cm_depthwise_block block = v->block;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / v->chunks_of_image;
        const int64_t first = i % v->chunks_of_image * v->rows_of_chunk;
        const int64_t left = s->result[0] - first;
        const int64_t at = (image * s->result[0] + first) * s->result[1];
        block.rows = (int)(left < v->rows_of_chunk ? left : v->rows_of_chunk);
        for (int r = 0; r < block.rows; r++) {
            const struct taps rows = inside(s, 0, first + r);
            const bool any = rows.begin < rows.end;
            const int64_t row = any ? place(s, 0, first + r, rows.begin) : 0;
            block.tap_rows[r] = rows.end - rows.begin;
            block.x[r] = run->x + (image * s->image[0] + row) * s->image[1] * s->channels;
            block.kernels[r] = run->kernels + (any ? rows.begin : 0) * s->kernel[1] * s->channels;
            block.y[r] = run->y + (at + r * s->result[1]) * s->channels;
        }
        v->convolve(&block);
        if (run->finish)
            run->finish(run->finish_arg, at, block.rows * s->result[1], block.y[0]);
    }
}

void cm_depthwise_run(const struct cm_depthwise_run *run)
{
    enum { WORTH_A_TEAM = 1 << 17, ENOUGH_CHUNKS = 16 };
    const struct cm_depthwise_sizes *s = &run->sizes;
    const int64_t rows = s->images * s->result[0] / ENOUGH_CHUNKS;
    struct convolving v = {.run = run,
                           .convolve = cm_depthwise_convolve(),
                           .block = {.channels = s->channels,
                                     .x_tap_row = s->dilation[0] * s->image[1] * s->channels,
                                     .image = s->image[1],
                                     .results = s->result[1],
                                     .taps = s->kernel[1],
                                     .stride = s->stride[1],
                                     .dilation = s->dilation[1],
                                     .pad = s->pad[1],
                                     .bias = run->bias}};
    v.rows_of_chunk = rows < 1 ? 1 : rows < CM_DEPTHWISE_ROWS ? rows : CM_DEPTHWISE_ROWS;
    v.chunks_of_image = (s->result[0] + v.rows_of_chunk - 1) / v.rows_of_chunk;
    find_inner(s, &v.block.inner_begin, &v.block.inner_end);
    const int64_t chunks = s->images * v.chunks_of_image;
    const double products = (double)(s->images * s->result[0] * s->result[1] * s->channels) *
                            (double)(s->kernel[0] * s->kernel[1]);
    cm_parallel(chunks, products < WORTH_A_TEAM ? chunks : 1, convolve_chunks, &v);
}

/* ---- the gradient by the kernels ---- */

struct adding {
    const struct cm_depthwise_sizes *sizes;
    cm_depthwise_add_fn *add;
    const float *x, *dy;
    float *sums; /* of the first part */
    int64_t rows_of_part;
    int64_t inner_begin, inner_end; /* results along a row of which no tap lies outside */
};

/* Results [begin, end) of a row, at these taps of a row of taps; sums are those of its first. */
static void add_results(const struct adding *a, const float *x_row, const float *dy_row,
                        float *sums, int64_t begin, int64_t end, struct taps taps)
{
    const struct cm_depthwise_sizes *s = a->sizes;
    if (begin < end && taps.begin < taps.end)
        a->add(
            &(struct cm_depthwise_sums){.channels = s->channels,
                                        .count = end - begin,
                                        .dy = dy_row + begin * s->channels,
                                        .x = x_row + place(s, 1, begin, taps.begin) * s->channels,
                                        .dy_step = s->channels,
                                        .x_step = s->stride[1] * s->channels,
                                        .columns = taps.end - taps.begin,
                                        .column_step = s->dilation[1] * s->channels,
                                        .sums = sums + taps.begin * s->channels});
}

static void add_row(const struct adding *a, int64_t image, int64_t row, float *sums)
{
    const struct cm_depthwise_sizes *s = a->sizes;
    const float *dy = a->dy + (image * s->result[0] + row) * s->result[1] * s->channels;
    const struct taps rows = inside(s, 0, row), all = {0, s->kernel[1]};
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const int64_t at = image * s->image[0] + place(s, 0, row, i);
        const float *x = a->x + at * s->image[1] * s->channels;
        float *to = sums + i * s->kernel[1] * s->channels;
        for (int64_t o = 0; o < a->inner_begin; o++)
            add_results(a, x, dy, to, o, o + 1, inside(s, 1, o));
        add_results(a, x, dy, to, a->inner_begin, a->inner_end, all);
        for (int64_t o = a->inner_end; o < s->result[1]; o++)
            add_results(a, x, dy, to, o, o + 1, inside(s, 1, o));
    }
}

static void add_parts(void *arg, int64_t begin, int64_t end)
{
    const struct adding *a = arg;
    const struct cm_depthwise_sizes *s = a->sizes;
    const int64_t size = s->kernel[0] * s->kernel[1] * s->channels;
    const int64_t rows = s->images * s->result[0];
    for (int64_t part = begin; part < end; part++) {
        float *sums = a->sums + part * size;
        const int64_t first = part * a->rows_of_part, next = first + a->rows_of_part;
        memset(sums, 0, (size_t)size * sizeof *sums);
        for (int64_t i = first; i < next && i < rows; i++)
            add_row(a, i / s->result[0], i % s->result[0], sums);
    }
}

int64_t cm_depthwise_parts(const struct cm_depthwise_sizes *s)
{
    enum { WORTH_A_THREAD = 1 << 17, LEAST_ROWS = 4, MOST_PARTS = 32 };
    const int64_t products = s->result[1] * s->channels * s->kernel[0] * s->kernel[1];
    const int64_t rows = LEAST_ROWS + WORTH_A_THREAD / products;
    const int64_t parts = s->images * s->result[0] / rows;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

void cm_depthwise_weight_gradient(const struct cm_depthwise_sizes *sizes, const float *x,
                                  const float *dy, float *scratch, float *dw)
{
    const int64_t parts = cm_depthwise_parts(sizes), taps = sizes->kernel[0] * sizes->kernel[1];
    const int64_t channels = sizes->channels, size = taps * channels;
    const int64_t rows = sizes->images * sizes->result[0];
    struct adding a = {.sizes = sizes,
                       .add = cm_depthwise_add(),
                       .x = x,
                       .dy = dy,
                       .sums = scratch,
                       .rows_of_part = (rows + parts - 1) / parts};
    find_inner(sizes, &a.inner_begin, &a.inner_end);
    cm_parallel(parts, 1, add_parts, &a);
    for (int64_t part = 1; part < parts; part++)
        for (int64_t i = 0; i < size; i++)
            scratch[i] += scratch[part * size + i];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < taps; t++)
            dw[c * taps + t] = scratch[t * channels + c];
}

void cm_depthwise_bias_gradient(const struct cm_depthwise_sizes *s, const float *dy, float *db)
{
    enum { BLOCK = 64 };
    const int64_t places = s->images * s->result[0] * s->result[1];
    for (int64_t c = 0; c < s->channels; c += BLOCK) {
        const int64_t n = s->channels - c < BLOCK ? s->channels - c : BLOCK;
        double sums[BLOCK] = {0};
        for (int64_t i = 0; i < places; i++)
            for (int64_t k = 0; k < n; k++)
                sums[k] += (double)dy[i * s->channels + c + k];
        for (int64_t k = 0; k < n; k++)
            db[c + k] = (float)sums[k];
    }
}
