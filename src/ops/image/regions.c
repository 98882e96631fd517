/* RoiAlign and MaxRoiPool: regions of an image, given as rectangles, brought to one size. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/common/line.h"

#include <math.h>

static enum cm_status infer_regions(struct cm_infer *in, int64_t columns, int64_t height,
                                    int64_t width)
{
    const struct cm_type *x = cm_infer_type(in, 0), *rois = cm_infer_type(in, 1);
    struct cm_dim both;
    if (x->rank != CM_RANK_UNKNOWN && x->rank != 4)
        return cm_infer_fail(in, "input 0 has rank %d, needs 4", x->rank);
    if (rois->rank != CM_RANK_UNKNOWN && rois->rank != 2)
        return cm_infer_fail(in, "input 1 has rank %d, needs 2", rois->rank);
    if (rois->rank == 2 && !cm_dim_unify(rois->dims[1], CM_DIM(columns), &both))
        return cm_infer_fail(in, "a region has %lld numbers, needs %lld",
                             (long long)rois->dims[1].value, (long long)columns);
    if (height < 1 || width < 1)
        return cm_infer_fail(in, "its result is %lld by %lld, must be 1 or more", (long long)height,
                             (long long)width);
    const struct cm_dim dims[4] = {rois->rank == 2 ? rois->dims[0] : CM_DIM_ANY,
                                   x->rank == 4 ? x->dims[1] : CM_DIM_ANY, CM_DIM(height),
                                   CM_DIM(width)};
    return cm_infer_set_tensor(in, 0, x->dtype, 4, dims);
}

static enum cm_status check_image(struct cm_call *call, int64_t image)
{
    const int64_t limit = call->in[0]->shape.dims[0];
    if (image < 0 || image >= limit)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "a region is of image %lld, there are %lld",
                            (long long)image, (long long)limit);
    return CM_OK;
}

/* ---- RoiAlign ---- */

static enum cm_status align_infer(struct cm_infer *in)
{
    const struct cm_type *indices = cm_infer_type(in, 2), *rois = cm_infer_type(in, 1);
    const struct cm_str mode = cm_node_str(in->node, "mode");
    const struct cm_str how = cm_node_str(in->node, "coordinate_transformation_mode");
    struct cm_dim both;
    if (!cm_str_is(mode, "avg") && !cm_str_is(mode, "max"))
        return cm_infer_fail(in, "mode '%.*s' is neither 'avg' nor 'max'", CM_STR_FMT(mode));
    if (!cm_str_is(how, "half_pixel") && !cm_str_is(how, "output_half_pixel"))
        return cm_infer_fail(in, "coordinate_transformation_mode '%.*s' is not known",
                             CM_STR_FMT(how));
    if (cm_node_int(in->node, "sampling_ratio") < 0 ||
        cm_node_int(in->node, "sampling_ratio") > INT32_MAX)
        return cm_infer_fail(in, "sampling_ratio is out of range");
    if (indices->rank != CM_RANK_UNKNOWN && indices->rank != 1)
        return cm_infer_fail(in, "input 2 has rank %d, needs 1", indices->rank);
    if (indices->rank == 1 && rois->rank == 2 &&
        !cm_dim_unify(indices->dims[0], rois->dims[0], &both))
        return cm_infer_fail(in, "there are %lld regions and %lld indices",
                             (long long)rois->dims[0].value, (long long)indices->dims[0].value);
    return infer_regions(in, 4, cm_node_int(in->node, "output_height"),
                         cm_node_int(in->node, "output_width"));
}

/* One axis of one region. */
struct extent {
    double start, bin; /* of the first cell, and the size of one */
    int64_t samples;   /* in a cell */
    int64_t length;    /* of the image */
};

/* Samples [from, to) of a cell lie where the image can be read. */
static void inside(const struct extent *e, int64_t cell, int64_t *from, int64_t *to)
{
    const double step = e->bin / (double)e->samples;
    const double first = e->start + (double)cell * e->bin + 0.5 * step;
    *from = 0;
    *to = e->samples;
    if (!(step > 0)) { /* a region without extent: all samples are the same, or none is known */
        if (!(first >= -1 && first <= (double)e->length))
            *to = 0;
        return;
    }
    const double low = ceil((-1 - first) / step), high = floor(((double)e->length - first) / step);
    if (low > 0)
        *from = low < (double)e->samples ? (int64_t)low : e->samples;
    if (high < (double)(e->samples - 1))
        *to = high < 0 ? 0 : (int64_t)high + 1;
    if (*to < *from)
        *to = *from;
}

/* The two pixels around a sample and the weight of the second. */
struct between {
    int64_t low, high;
    double t;
};

static struct between pixels(const struct extent *e, int64_t cell, int64_t sample)
{
    double v =
        e->start + (double)cell * e->bin + ((double)sample + 0.5) * e->bin / (double)e->samples;
    const double last = (double)(e->length - 1);
    v = v > 0 ? v : 0;
    if (v >= last)
        return (struct between){e->length - 1, e->length - 1, 0};
    return (struct between){(int64_t)v, (int64_t)v + 1, v - floor(v)};
}

/* One cell of one channel, whose pixels start at element plane of X. */
static double pool_cell(const struct cm_tensor *x, int64_t plane, const struct extent *h,
                        const struct extent *w, int64_t ph, int64_t pw, bool largest)
{
    int64_t y_from, y_to, x_from, x_to;
    inside(h, ph, &y_from, &y_to);
    inside(w, pw, &x_from, &x_to);
    const double all = (double)h->samples * (double)w->samples;
    const bool whole = (double)(y_to - y_from) * (double)(x_to - x_from) == all;
    double sum = 0, most = whole ? (double)-INFINITY : 0; /* outside counts as zero */
    for (int64_t i = y_from; i < y_to; i++) {
        const struct between a = pixels(h, ph, i);
        for (int64_t j = x_from; j < x_to; j++) {
            const struct between b = pixels(w, pw, j);
            const double v[4] = {
                (1 - a.t) * (1 - b.t) * cm_tensor_real(x, plane + a.low * w->length + b.low),
                (1 - a.t) * b.t * cm_tensor_real(x, plane + a.low * w->length + b.high),
                a.t * (1 - b.t) * cm_tensor_real(x, plane + a.high * w->length + b.low),
                a.t * b.t * cm_tensor_real(x, plane + a.high * w->length + b.high)};
            sum += v[0] + v[1] + v[2] + v[3];
            for (int k = 0; largest && k < 4; k++)
                most = v[k] > most ? v[k] : most;
        }
    }
    return largest ? (all > 0 ? most : 0) : sum / (all > 1 ? all : 1);
}

static struct extent extent_of(const struct cm_call *call, int64_t roi, int axis, bool half_pixel)
{
    const struct cm_tensor *rois = call->in[1];
    const double scale = (double)cm_node_float(call->node, "spatial_scale");
    const int64_t ratio = cm_node_int(call->node, "sampling_ratio");
    const int64_t cells = call->out[0]->shape.dims[2 + axis];
    const double off = half_pixel ? 0.5 : 0;
    struct extent e = {.length = call->in[0]->shape.dims[2 + axis]};
    e.start = cm_tensor_real(rois, roi * 4 + 1 - axis) * scale - off;
    double size = cm_tensor_real(rois, roi * 4 + 3 - axis) * scale - off - e.start;
    if (!half_pixel && !(size > 1))
        size = 1;
    e.bin = size / (double)cells;
    const double natural = ceil(e.bin);
    e.samples = ratio > 0          ? ratio
                : !(natural > 0)   ? 0
                : natural < 0x1p53 ? (int64_t)natural
                                   : INT64_C(1) << 53;
    return e;
}

static enum cm_status align_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *y = &call->out[0]->shape;
    const bool largest = cm_str_is(cm_node_str(call->node, "mode"), "max");
    const bool half_pixel =
        cm_str_is(cm_node_str(call->node, "coordinate_transformation_mode"), "half_pixel");
    const int64_t area = x->shape.dims[2] * x->shape.dims[3];
    int64_t at = 0;
    if (cm_tensor_count(call->out[0]) > 0 && area == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "there is no pixel to read");
    for (int64_t roi = 0; roi < y->dims[0]; roi++) {
        const int64_t image = cm_tensor_int(call->in[2], roi);
        CM_TRY(check_image(call, image));
        const struct extent h = extent_of(call, roi, 0, half_pixel);
        const struct extent w = extent_of(call, roi, 1, half_pixel);
        for (int64_t c = 0; c < y->dims[1]; c++)
            for (int64_t ph = 0; ph < y->dims[2]; ph++)
                for (int64_t pw = 0; pw < y->dims[3]; pw++)
                    cm_line_store(
                        cm_line_at(call->out[0], at++),
                        pool_cell(x, (image * y->dims[1] + c) * area, &h, &w, ph, pw, largest));
    }
    return CM_OK;
}

CM_OP(RoiAlign, .infer = align_infer, .run = align_run);

/* ---- MaxRoiPool ---- */

static enum cm_status pool_infer(struct cm_infer *in)
{
    const struct cm_int64s size = cm_node_ints(in->node, "pooled_shape");
    if (size.count != 2)
        return cm_infer_fail(in, "pooled_shape has %zu numbers, needs 2", size.count);
    return infer_regions(in, 5, size.items[0], size.items[1]);
}

/* The pixels that one cell of one axis covers. */
static void cell_span(double start, double bin, int64_t cell, int64_t length, int64_t *from,
                      int64_t *to)
{
    const double low = floor((double)cell * bin) + start,
                 high = ceil((double)(cell + 1) * bin) + start;
    const double end = (double)length;
    *from = !(low > 0) ? 0 : low < end ? (int64_t)low : length;
    *to = !(high > 0) ? 0 : high < end ? (int64_t)high : length;
}

static double largest_of(const struct cm_tensor *x, int64_t plane, int64_t width,
                         const int64_t rows[2], const int64_t columns[2])
{
    double most = (double)-INFINITY;
    if (rows[0] >= rows[1] || columns[0] >= columns[1])
        return 0;
    for (int64_t i = rows[0]; i < rows[1]; i++) {
        for (int64_t j = columns[0]; j < columns[1]; j++) {
            const double v = cm_tensor_real(x, plane + i * width + j);
            most = v > most || v != v ? v : most;
        }
    }
    return most;
}

static enum cm_status pool_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0], *rois = call->in[1];
    const struct cm_shape *y = &call->out[0]->shape;
    const double scale = (double)cm_node_float(call->node, "spatial_scale");
    const int64_t height = x->shape.dims[2], width = x->shape.dims[3];
    int64_t at = 0;
    for (int64_t roi = 0; roi < y->dims[0]; roi++) {
        const double number = cm_tensor_real(rois, roi * 5);
        const int64_t image = number >= 0 && number < 0x1p62 ? (int64_t)number : -1;
        double start[2], bin[2];
        CM_TRY(check_image(call, image));
        for (int a = 0; a < 2; a++) { /* rows are the second number of a corner */
            start[a] = round(cm_tensor_real(rois, roi * 5 + 2 - a) * scale);
            const double size = round(cm_tensor_real(rois, roi * 5 + 4 - a) * scale) - start[a] + 1;
            bin[a] = (size > 1 ? size : 1) / (double)y->dims[2 + a];
        }
        for (int64_t c = 0; c < y->dims[1]; c++) {
            for (int64_t i = 0; i < y->dims[2] * y->dims[3]; i++) {
                int64_t rows[2], columns[2];
                cell_span(start[0], bin[0], i / y->dims[3], height, &rows[0], &rows[1]);
                cell_span(start[1], bin[1], i % y->dims[3], width, &columns[0], &columns[1]);
                cm_line_store(
                    cm_line_at(call->out[0], at++),
                    largest_of(x, (image * y->dims[1] + c) * height * width, width, rows, columns));
            }
        }
    }
    return CM_OK;
}

CM_OP(MaxRoiPool, .infer = pool_infer, .run = pool_run);
