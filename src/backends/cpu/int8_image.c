/* Layouts and windows of images of bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/int8_image.h"

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
            for (int64_t k = c; k < stop; k++)
                for (int64_t r = first; r < last; r++)
                    job->to[matrix + k * job->rows + r] = job->from[matrix + r * job->columns + k];
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

enum { MOST = 1 << 20 }; /* of any attribute: products of two and sums of products fit in 64 bits */

static int64_t attribute(struct cm_int64s list, int axis, int64_t absent)
{
    return (size_t)axis < list.count ? list.items[axis] : absent;
}

static bool read_axis(struct cm_call *call, int axis, int rank, int64_t size, int64_t result,
                      struct cm_int8_window *w, int at)
{
    const struct cm_node *node = call->node;
    const struct cm_int64s pads = cm_node_ints(node, "pads");
    const struct cm_str automatic = cm_node_str(node, "auto_pad");
    w->in[at] = size;
    w->out[at] = result;
    w->stride[at] = attribute(cm_node_ints(node, "strides"), axis, 1);
    w->dilation[at] = attribute(cm_node_ints(node, "dilations"), axis, 1);
    if (w->kernel[at] > MOST || w->stride[at] > MOST || w->dilation[at] > MOST || size > MOST)
        return cm_call_decline(call, "its window or image is too large");
    const bool upper = cm_str_is(automatic, "SAME_UPPER");
    if (upper || cm_str_is(automatic, "SAME_LOWER")) {
        const int64_t extent = (w->kernel[at] - 1) * w->dilation[at] + 1;
        const int64_t reach = (result - 1) * w->stride[at] + extent;
        const int64_t total = reach > size ? reach - size : 0;
        w->pad[at] = upper ? total / 2 : total - total / 2;
    } else if (!cm_str_is(automatic, "VALID") && pads.count == (size_t)rank * 2) {
        w->pad[at] = pads.items[axis];
    }
    if (w->pad[at] < 0 || w->pad[at] > MOST)
        return cm_call_decline(call, "its padding is negative or too large");
    return true;
}

bool cm_int8_window_read(struct cm_call *call, const struct cm_shape *x, const int64_t *kernel,
                         struct cm_int8_window *out)
{
    const int rank = x->rank - 2, missing = 3 - rank;
    *out = (struct cm_int8_window){{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1},
                                   {0},       1,         1,         1};
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "it has %d spatial axes", rank);
    for (int i = 0; i < rank; i++) {
        out->kernel[missing + i] = kernel[i];
        if (!read_axis(call, i, rank, x->dims[i + 2], call->out[0]->shape.dims[i + 2], out,
                       missing + i))
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (!cm_dim_mul(out->taps, out->kernel[i], &out->taps) ||
            !cm_dim_mul(out->pixels, out->in[i], &out->pixels) ||
            !cm_dim_mul(out->out_pixels, out->out[i], &out->out_pixels))
            return cm_call_decline(call, "its window or image is too large");
    return true;
}

static const uint8_t *tap_at(const struct cm_int8_window *w, const uint8_t *image, int64_t channels,
                             const uint8_t *outside, const int64_t *corner, int64_t z, int64_t y,
                             int64_t x)
{
    z = corner[0] + z * w->dilation[0];
    y = corner[1] + y * w->dilation[1];
    x = corner[2] + x * w->dilation[2];
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || x < 0 || x >= w->in[2])
        return outside;
    return image + ((z * w->in[1] + y) * w->in[2] + x) * channels;
}

void cm_int8_window_point(const struct cm_int8_window *w, const uint8_t *image, int64_t channels,
                          const uint8_t *outside, int64_t first, int count,
                          const uint8_t **pointers)
{
    enum { ROWS = 8 };
    for (int i = 0; i < ROWS; i++) {
        const int64_t at = first + (i < count ? i : count - 1);
        const int64_t corner[3] = {
            at / (w->out[1] * w->out[2]) * w->stride[0] - w->pad[0],
            at / w->out[2] % w->out[1] * w->stride[1] - w->pad[1],
            at % w->out[2] * w->stride[2] - w->pad[2],
        };
        const uint8_t **to = pointers + i;
        for (int64_t z = 0; z < w->kernel[0]; z++)
            for (int64_t y = 0; y < w->kernel[1]; y++)
                for (int64_t x = 0; x < w->kernel[2]; x++, to += ROWS)
                    *to = tap_at(w, image, channels, outside, corner, z, y, x);
    }
}
