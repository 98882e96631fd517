/* RoiAlign and MaxRoiPool: regions of an image, given as rectangles, brought to one size. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/image/regions.h"

#include "tensor/line.h"

#include <math.h>

/* Output 0 is (regions, channels, height, width); input 0 is the image, input 1 the regions. */
static enum cm_status regions_infer(struct cm_infer *in, enum cm_dtype dtype, int64_t columns,
                                    int64_t height, int64_t width)
{
    const struct cm_type *x = cm_infer_type(in, 0), *rois = cm_infer_type(in, 1);
    struct cm_dim both;
    CM_TRY(cm_infer_rank(in, 0, 4, 4));
    CM_TRY(cm_infer_rank(in, 1, 2, 2));
    if (rois->rank == 2 && !cm_dim_unify(rois->dims[1], CM_DIM(columns), &both))
        return cm_infer_fail(in, "a region has %lld numbers, needs %lld",
                             (long long)rois->dims[1].value, (long long)columns);
    if (height < 1 || width < 1)
        return cm_infer_fail(in, "its result is %lld by %lld, must be 1 or more", (long long)height,
                             (long long)width);
    const struct cm_dim dims[4] = {rois->rank == 2 ? rois->dims[0] : CM_DIM_ANY,
                                   x->rank == 4 ? x->dims[1] : CM_DIM_ANY, CM_DIM(height),
                                   CM_DIM(width)};
    return cm_infer_set_tensor(in, 0, dtype, 4, dims);
}

enum cm_status cm_regions_check_image(struct cm_call *call, int64_t image, int64_t limit)
{
    if (image < 0 || image >= limit)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "a region belongs to image %lld, there are %lld",
                            (long long)image, (long long)limit);
    return CM_OK;
}

/* ---- RoiAlign ---- */

/* Samples of a cell along an axis. Networks use 2 or 4; a short file must not ask for more than can
 * be computed. */
enum { RATIO_MAX = 256 };

enum cm_status cm_align_infer(struct cm_infer *in, enum cm_dtype dtype)
{
    const struct cm_type *indices = cm_infer_type(in, 2), *rois = cm_infer_type(in, 1);
    const struct cm_str how = cm_node_str(in->node, "coordinate_transformation_mode");
    struct cm_dim both;
    if (!cm_str_is(how, "half_pixel") && !cm_str_is(how, "output_half_pixel"))
        return cm_infer_fail(in,
                             "attribute 'coordinate_transformation_mode' is '%.*s', expected "
                             "'half_pixel' or 'output_half_pixel'",
                             CM_STR_FMT(how));
    if (cm_node_int(in->node, "sampling_ratio") < 0 ||
        cm_node_int(in->node, "sampling_ratio") > RATIO_MAX)
        return cm_infer_fail(in, "sampling_ratio is %lld, must be 0 to %d",
                             (long long)cm_node_int(in->node, "sampling_ratio"), RATIO_MAX);
    CM_TRY(cm_infer_rank(in, 2, 1, 1));
    if (indices->rank == 1 && rois->rank == 2 &&
        !cm_dim_unify(indices->dims[0], rois->dims[0], &both))
        return cm_infer_fail(in, "there are %lld regions and %lld indices",
                             (long long)rois->dims[0].value, (long long)indices->dims[0].value);
    return regions_infer(in, dtype, 4, cm_node_int(in->node, "output_height"),
                         cm_node_int(in->node, "output_width"));
}

static enum cm_status align_infer(struct cm_infer *in)
{
    const struct cm_str mode = cm_node_str(in->node, "mode");
    if (!cm_str_is(mode, "avg") && !cm_str_is(mode, "max"))
        return cm_infer_fail(in, "attribute 'mode' is '%.*s', expected 'avg' or 'max'",
                             CM_STR_FMT(mode));
    return cm_align_infer(in, cm_infer_type(in, 0)->dtype);
}

struct cm_align cm_align_of(const struct cm_node *node, const struct cm_shape *image)
{
    return (struct cm_align){
        .half_pixel = cm_str_is(cm_node_str(node, "coordinate_transformation_mode"), "half_pixel"),
        .scale = (double)cm_node_float(node, "spatial_scale"),
        .ratio = cm_node_int(node, "sampling_ratio"),
        .cells = {cm_node_int(node, "output_height"), cm_node_int(node, "output_width")},
        .lengths = {image->dims[2], image->dims[3]}};
}

struct cm_extent cm_align_extent(const struct cm_align *align, const struct cm_tensor *rois,
                                 int64_t roi, int axis)
{
    const double off = align->half_pixel ? 0.5 : 0;
    struct cm_extent e = {.length = align->lengths[axis]};
    e.start = cm_tensor_real(rois, roi * 4 + 1 - axis) * align->scale - off;
    double size = cm_tensor_real(rois, roi * 4 + 3 - axis) * align->scale - off - e.start;
    if (!align->half_pixel && !(size > 1))
        size = 1;
    e.bin = size / (double)align->cells[axis];
    const double natural = ceil(e.bin);
    e.samples = align->ratio > 0   ? align->ratio
                : !(natural > 0)   ? 0
                : natural < 0x1p53 ? (int64_t)natural
                                   : INT64_C(1) << 53;
    return e;
}

static double position(const struct cm_extent *e, int64_t cell, int64_t sample)
{
    return e->start + (double)cell * e->bin + ((double)sample + 0.5) * e->bin / (double)e->samples;
}

static bool is_inside(const struct cm_extent *e, int64_t cell, int64_t sample)
{
    const double v = position(e, cell, sample);
    return v >= -1 && v <= (double)e->length;
}

static int64_t whole_within(double v, int64_t limit)
{
    return !(v > 0) ? 0 : v < (double)limit ? (int64_t)v : limit;
}

/* Positions are evenly spaced, so those inside are neighbours: a division finds them, however many
 * samples a cell has, and the samples beside its result settle what it rounded. */
void cm_extent_inside(const struct cm_extent *e, int64_t cell, int64_t *from, int64_t *to)
{
    const double step = e->bin / (double)e->samples;
    const double first = e->start + (double)cell * e->bin + 0.5 * step;
    *from = *to = 0;
    if (!isfinite(first) || !isfinite(step) || e->samples < 1)
        return;
    if (step == 0) {
        *to = is_inside(e, cell, 0) ? e->samples : 0;
        return;
    }
    const double a = (-1 - first) / step, b = ((double)e->length - first) / step;
    *from = whole_within(ceil(fmin(a, b)), e->samples);
    *to = whole_within(floor(fmax(a, b)) + 1, e->samples);
    *from -= *from > 0 && is_inside(e, cell, *from - 1);
    *to += *to < e->samples && is_inside(e, cell, *to);
    *from += *from < *to && !is_inside(e, cell, *from);
    *to -= *from < *to && !is_inside(e, cell, *to - 1);
    if (*to < *from)
        *to = *from;
}

struct cm_between cm_extent_pixels(const struct cm_extent *e, int64_t cell, int64_t sample)
{
    const double v = fmax(position(e, cell, sample), 0), last = (double)(e->length - 1);
    if (v >= last)
        return (struct cm_between){e->length - 1, e->length - 1, 0};
    return (struct cm_between){(int64_t)v, (int64_t)v + 1, v - floor(v)};
}

/* The mean of one cell of one channel, whose pixels start at element plane of X. */
static double mean_of_cell(const struct cm_tensor *x, int64_t plane, const struct cm_extent *h,
                           const struct cm_extent *w, int64_t ph, int64_t pw)
{
    int64_t y_from, y_to, x_from, x_to;
    cm_extent_inside(h, ph, &y_from, &y_to);
    cm_extent_inside(w, pw, &x_from, &x_to);
    const double all = (double)h->samples * (double)w->samples;
    double sum = 0; /* outside counts as zero */
    for (int64_t i = y_from; i < y_to; i++) {
        const struct cm_between a = cm_extent_pixels(h, ph, i);
        const int64_t low = plane + a.low * w->length, high = plane + a.high * w->length;
        for (int64_t j = x_from; j < x_to; j++) {
            const struct cm_between b = cm_extent_pixels(w, pw, j);
            sum += (1 - a.t) * (1 - b.t) * cm_tensor_real(x, low + b.low) +
                   (1 - a.t) * b.t * cm_tensor_real(x, low + b.high) +
                   a.t * (1 - b.t) * cm_tensor_real(x, high + b.low) +
                   a.t * b.t * cm_tensor_real(x, high + b.high);
        }
    }
    return sum / (all > 1 ? all : 1);
}

/* ONNX takes the largest of the weighted pixels, not of the samples that they add up to. */
struct cm_peak cm_align_peak(const struct cm_tensor *x, int64_t plane, const struct cm_extent *h,
                             const struct cm_extent *w, int64_t ph, int64_t pw)
{
    int64_t y_from, y_to, x_from, x_to;
    cm_extent_inside(h, ph, &y_from, &y_to);
    cm_extent_inside(w, pw, &x_from, &x_to);
    const double all = (double)h->samples * (double)w->samples;
    const bool whole = (double)(y_to - y_from) * (double)(x_to - x_from) == all;
    struct cm_peak peak = {.value = whole && all > 0 ? (double)-INFINITY : 0, .place = -1};
    for (int64_t i = y_from; i < y_to; i++) {
        const struct cm_between a = cm_extent_pixels(h, ph, i);
        for (int64_t j = x_from; j < x_to; j++) {
            const struct cm_between b = cm_extent_pixels(w, pw, j);
            for (int k = 0; k < 4; k++) {
                const int64_t place =
                    plane + (k & 2 ? a.high : a.low) * w->length + (k & 1 ? b.high : b.low);
                const double weight = (k & 2 ? a.t : 1 - a.t) * (k & 1 ? b.t : 1 - b.t);
                const double value = weight * cm_tensor_real(x, place);
                if (value > peak.value)
                    peak = (struct cm_peak){value, weight, place};
            }
        }
    }
    return peak;
}

static enum cm_status align_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *y = &call->out[0]->shape;
    const struct cm_align align = cm_align_of(call->node, &x->shape);
    const bool largest = cm_str_is(cm_node_str(call->node, "mode"), "max");
    const int64_t area = x->shape.dims[2] * x->shape.dims[3];
    int64_t at = 0;
    if (cm_tensor_count(call->out[0]) > 0 && area == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "there is no pixel to read");
    for (int64_t roi = 0; roi < y->dims[0]; roi++) {
        const int64_t image = cm_tensor_int(call->in[2], roi);
        CM_TRY(cm_regions_check_image(call, image, x->shape.dims[0]));
        const struct cm_extent h = cm_align_extent(&align, call->in[1], roi, 0);
        const struct cm_extent w = cm_align_extent(&align, call->in[1], roi, 1);
        for (int64_t c = 0; c < y->dims[1]; c++) {
            const int64_t plane = (image * y->dims[1] + c) * area;
            for (int64_t ph = 0; ph < y->dims[2]; ph++)
                for (int64_t pw = 0; pw < y->dims[3]; pw++)
                    cm_line_store(cm_line_at(call->out[0], at++),
                                  largest ? cm_align_peak(x, plane, &h, &w, ph, pw).value
                                          : mean_of_cell(x, plane, &h, &w, ph, pw));
        }
    }
    return CM_OK;
}

/* Each cell of each region reads its samples. */
static double align_work(const struct cm_node *node, const struct cm_amount *amount)
{
    const double touched = cm_work_linear(node, amount);
    const double samples = (double)cm_node_int(node, "sampling_ratio");
    return touched * touched * (samples * samples + 1);
}

CM_OP(RoiAlign, .infer = align_infer, .run = align_run, .grad = cm_align_grad,
      .cost.work = align_work);

/* ---- MaxRoiPool ---- */

static enum cm_status pool_infer(struct cm_infer *in)
{
    return cm_pool_regions_infer(in, cm_infer_type(in, 0)->dtype);
}

enum cm_status cm_pool_regions_infer(struct cm_infer *in, enum cm_dtype dtype)
{
    const struct cm_int64s size = cm_node_ints(in->node, "pooled_shape");
    if (size.count != 2)
        return cm_infer_fail(in, "pooled_shape has %zu numbers, needs 2", size.count);
    return regions_infer(in, dtype, 5, size.items[0], size.items[1]);
}

/* The pixels that one cell of one axis covers. */
static void cell_span(double start, double bin, int64_t cell, int64_t length, int64_t span[2])
{
    span[0] = whole_within(floor((double)cell * bin) + start, length);
    span[1] = whole_within(ceil((double)(cell + 1) * bin) + start, length);
}

/* NaN wins, and the first of equal maxima. */
static struct cm_peak largest_of(const struct cm_tensor *x, int64_t plane, int64_t width,
                                 const int64_t rows[2], const int64_t columns[2])
{
    struct cm_peak peak = {.place = -1}; /* a cell without pixels is zero */
    for (int64_t i = rows[0]; i < rows[1]; i++) {
        for (int64_t j = columns[0]; j < columns[1]; j++) {
            const int64_t place = plane + i * width + j;
            const double v = cm_tensor_real(x, place);
            if (peak.place < 0 || v > peak.value || (v != v && peak.value == peak.value))
                peak = (struct cm_peak){v, 1, place};
        }
    }
    return peak;
}

enum cm_status cm_pool_regions(struct cm_call *call, cm_peak_fn *found)
{
    const struct cm_tensor *x = call->in[0], *rois = call->in[1];
    const struct cm_int64s cells = cm_node_ints(call->node, "pooled_shape");
    const double scale = (double)cm_node_float(call->node, "spatial_scale");
    const int64_t channels = x->shape.dims[1], height = x->shape.dims[2], width = x->shape.dims[3];
    int64_t at = 0;
    for (int64_t roi = 0; roi < rois->shape.dims[0]; roi++) {
        const double number = cm_tensor_real(rois, roi * 5);
        /* Truncated as other runtimes do, so -0.5 is image 0. */
        const int64_t image = number > -0x1p62 && number < 0x1p62 ? (int64_t)number : -1;
        double start[2], bin[2];
        CM_TRY(cm_regions_check_image(call, image, x->shape.dims[0]));
        for (int a = 0; a < 2; a++) { /* rows are the second number of a corner */
            start[a] = round(cm_tensor_real(rois, roi * 5 + 2 - a) * scale);
            const double size = round(cm_tensor_real(rois, roi * 5 + 4 - a) * scale) - start[a] + 1;
            bin[a] = (size > 1 ? size : 1) / (double)cells.items[a];
        }
        for (int64_t c = 0; c < channels; c++) {
            const int64_t plane = (image * channels + c) * height * width;
            for (int64_t i = 0; i < cells.items[0] * cells.items[1]; i++) {
                int64_t rows[2], columns[2];
                cell_span(start[0], bin[0], i / cells.items[1], height, rows);
                cell_span(start[1], bin[1], i % cells.items[1], width, columns);
                found(call, at++, largest_of(x, plane, width, rows, columns));
            }
        }
    }
    return CM_OK;
}

static void store_value(struct cm_call *call, int64_t at, struct cm_peak peak)
{
    cm_line_store(cm_line_at(call->out[0], at), peak.value);
}

static enum cm_status pool_run(struct cm_call *call)
{
    return cm_pool_regions(call, store_value);
}

CM_OP(MaxRoiPool, .infer = pool_infer, .run = pool_run, .grad = cm_pool_regions_grad);
