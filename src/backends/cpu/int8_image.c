/* Layouts and windows of images of bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_image.h"

#include "backends/window_axis.h"
#include "base/number.h"
#include "base/parallel.h"

/* ---- The layout ---- */

static bool same_image(const struct cm_layout *a, const struct cm_layout *b)
{
    const struct cm_int8_image *p = (const struct cm_int8_image *)(const void *)a;
    const struct cm_int8_image *q = (const struct cm_int8_image *)(const void *)b;
    return p->images == q->images && p->channels == q->channels && p->pixels == q->pixels;
}

enum { SIDE = 32 }; /* of squares that are turned at a time */

struct turn_job {
    const uint8_t *from;
    uint8_t *to;
    int64_t rows, columns; /* of each of the matrices */
    int64_t strips;        /* of SIDE rows each, in a matrix */
};

/* Strips of matrices: rows become columns. */
static void turn_strips(void *arg, int64_t begin, int64_t end)
{
    const struct turn_job *job = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t matrix = i / job->strips * job->rows * job->columns;
        const int64_t first = i % job->strips * SIDE;
        const int64_t last = job->rows - first < SIDE ? job->rows : first + SIDE;
        for (int64_t c = 0; c < job->columns; c += SIDE) {
            const int64_t stop = job->columns - c < SIDE ? job->columns : c + SIDE;
            for (int64_t r = first; r < last; r++) {
                const uint8_t *from = job->from + matrix + r * job->columns;
                uint8_t *to = job->to + matrix + r;
                for (int64_t k = c; k < stop; k++)
                    to[k * job->rows] = from[k];
            }
        }
    }
}

static enum cm_status turn(const struct cm_tensor *from, struct cm_tensor *to, struct cm_error *err)
{
    const struct cm_int8_image *p =
        (const struct cm_int8_image *)(const void *)(to->layout ? to->layout : from->layout);
    struct turn_job job = {.from = from->data,
                           .to = to->data,
                           .rows = to->layout ? p->channels : p->pixels,
                           .columns = to->layout ? p->pixels : p->channels};
    (void)err;
    job.strips = (job.rows + SIDE - 1) / SIDE;
    const int64_t strip = SIDE * job.columns;
    const int64_t grain = strip ? (1 << 16) / strip + 1 : 1;
    if (p->images && p->channels && p->pixels)
        cm_parallel(p->images * job.strips, grain, turn_strips, &job);
    return CM_OK;
}

void cm_int8_image_init(struct cm_int8_image *image, const struct cm_shape *shape)
{
    *image = (struct cm_int8_image){.images = shape->dims[0],
                                    .channels = shape->dims[1],
                                    .pixels = cm_shape_span(shape, 2, shape->rank)};
    image->layout = (struct cm_layout){.name = "channels last",
                                       .bytes = (size_t)cm_shape_elements(shape),
                                       .size = sizeof *image,
                                       .same = same_image,
                                       .reorder = turn};
}

/* ---- Windows ---- */

bool cm_int8_window_read(struct cm_call *call, const struct cm_shape *x, const int64_t *kernel,
                         struct cm_int8_window *out)
{
    const int rank = x->rank - 2, missing = 3 - rank;
    *out = (struct cm_int8_window){.taps = 1, .pixels = 1, .out_pixels = 1};
    for (int i = 0; i < 3; i++)
        out->in[i] = out->out[i] = out->kernel[i] = out->stride[i] = out->dilation[i] = 1;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "the image has %d spatial axes", rank);
    for (int i = 0; i < rank; i++) {
        const int at = missing + i;
        struct cm_window_axis a;
        out->in[at] = x->dims[i + 2];
        out->out[at] = call->out[0]->shape.dims[i + 2];
        if (out->in[at] > CM_WINDOW_MOST)
            return cm_call_decline(call, "the window or image is too large");
        if (!cm_window_axis_read(call, call->node, i, rank, kernel[i], out->in[at], out->out[at],
                                 &a))
            return false;
        out->kernel[at] = a.kernel;
        out->stride[at] = a.stride;
        out->dilation[at] = a.dilation;
        out->pad[at] = a.pad_begin;
    }
    for (int i = 0; i < 3; i++)
        if (!cm_dim_mul(out->taps, out->kernel[i], &out->taps) ||
            !cm_dim_mul(out->pixels, out->in[i], &out->pixels) ||
            !cm_dim_mul(out->out_pixels, out->out[i], &out->out_pixels))
            return cm_call_decline(call, "the window or image is too large");
    out->is_point = out->taps == 1;
    for (int i = 0; i < 3; i++)
        out->is_point &= out->stride[i] == 1 && out->pad[i] == 0 && out->in[i] == out->out[i];
    return true;
}

/* The first element under a kernel, and whether all of them lie in the image. */
struct corner {
    int64_t at[3];
    bool inside;
};

static struct corner corner_of(const struct cm_int8_window *w, const int64_t *result)
{
    struct corner corner = {.inside = true};
    for (int i = 0; i < 3; i++) {
        corner.at[i] = result[i] * w->stride[i] - w->pad[i];
        corner.inside &=
            corner.at[i] >= 0 && corner.at[i] + (w->kernel[i] - 1) * w->dilation[i] < w->in[i];
    }
    return corner;
}

static void point_one(const struct cm_int8_window *w, const uint8_t *image, int64_t channels,
                      const uint8_t *outside, const int64_t *result, const uint8_t **to)
{
    const struct corner corner = corner_of(w, result);
    const int64_t step = w->dilation[2] * channels;
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            const int64_t z = corner.at[0] + i * w->dilation[0];
            const int64_t y = corner.at[1] + j * w->dilation[1];
            const bool inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
            int64_t x = corner.at[2];
            const uint8_t *line =
                image + (inside ? ((z * w->in[1] + y) * w->in[2] + x) * channels : 0);
            for (int64_t k = 0; corner.inside && k < w->kernel[2]; k++, to += CM_INT8_ROWS)
                *to = line + k * step;
            for (int64_t k = 0; !corner.inside && k < w->kernel[2]; k++, to += CM_INT8_ROWS) {
                *to = inside && x >= 0 && x < w->in[2] ? line + k * step : outside;
                x += w->dilation[2];
            }
        }
}

void cm_int8_window_point(const struct cm_int8_window *w, const uint8_t *image, int64_t channels,
                          const uint8_t *outside, int64_t first, int count,
                          const uint8_t **pointers)
{
    int64_t result[3] = {first / w->out[2] / w->out[1], first / w->out[2] % w->out[1],
                         first % w->out[2]};
    for (int i = 0; i < count && w->is_point; i++)
        pointers[i] = image + (first + i) * channels;
    for (int i = 0; i < count && !w->is_point; i++) {
        point_one(w, image, channels, outside, result,
                  pointers + i / CM_INT8_ROWS * w->taps * CM_INT8_ROWS + i % CM_INT8_ROWS);
        if (++result[2] < w->out[2])
            continue;
        result[2] = 0;
        if (++result[1] < w->out[1])
            continue;
        result[1] = 0;
        result[0]++;
    }
    for (int i = count; i % CM_INT8_ROWS; i++) {
        const uint8_t **to =
            pointers + i / CM_INT8_ROWS * w->taps * CM_INT8_ROWS + i % CM_INT8_ROWS;
        for (int64_t tap = 0; tap < w->taps; tap++, to += CM_INT8_ROWS)
            *to = to[-1];
    }
}
