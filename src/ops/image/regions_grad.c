/* Gradients of RoiAlign and MaxRoiPool, and the operators that compute them.
 *
 * A mean is linear in the image: RoiAlignGrad spreads each gradient over the pixels it was made
 * of. A maximum is one pixel, perhaps weighted: the Maxima operators say which, and how much it
 * counted; the rest is MaxPool's gradient. Regions have no gradient, on purpose: where they lie is
 * a choice, and ONNX says so of MaxRoiPool, other frameworks of RoiAlign too. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/image/regions.h"
#include "tensor/half.h"
#include "tensor/line.h"

/* ---- rules ---- */

#define ALIGN_ATTRIBUTES                                                                           \
    "<output_height, output_width, sampling_ratio, spatial_scale, coordinate_transformation_mode>"
/* The gradient goes to the pixels of the maxima, each as much as it counted. */
#define TO_MAXIMA "dX = ai.cameo::MaxPoolGrad(dY * weight, at, Shape(X))"

enum cm_status cm_align_grad(struct cm_grad *g)
{
    return cm_grad_formula(g, cm_str_is(cm_node_str(g->node, "mode"), "max")
                                  ? "at, weight = ai.cameo::RoiAlignMaxima" ALIGN_ATTRIBUTES
                                    "(X, rois, batch_indices);" TO_MAXIMA
                                  : "dX = ai.cameo::RoiAlignGrad" ALIGN_ATTRIBUTES
                                    "(dY, rois, batch_indices, Shape(X))");
}

enum cm_status cm_pool_regions_grad(struct cm_grad *g)
{
    return cm_grad_formula(
        g,
        "at, weight = ai.cameo::MaxRoiPoolMaxima<pooled_shape, spatial_scale>(X, rois);" TO_MAXIMA);
}

/* ---- ai.cameo::RoiAlignGrad (dY, rois, batch_indices, X_shape) -> dX ---- */

static enum cm_status spread_infer(struct cm_infer *in)
{
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    struct cm_dim dims[4] = {CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY};
    struct cm_known shape;
    CM_TRY(cm_align_infer(in, dtype));
    if (cm_infer_known(in, 3, &shape)) {
        if (shape.count != 4)
            return cm_infer_fail(in, "X_shape has %zu numbers, needs 4", shape.count);
        for (size_t i = 0; i < 4; i++)
            dims[i] = cm_quantity_dim(shape.items[i]);
    }
    return cm_infer_set_tensor(in, 0, dtype, 4, dims);
}

static enum cm_status spread_prepare(struct cm_call *call)
{
    const struct cm_shape *dy = &call->in[0]->shape, *dx = &call->out[0]->shape;
    const int64_t cells[2] = {cm_node_int(call->node, "output_height"),
                              cm_node_int(call->node, "output_width")};
    size_t weights;
    if (dy->dims[0] != call->in[1]->shape.dims[0] || dy->dims[1] != dx->dims[1] ||
        dy->dims[2] != cells[0] || dy->dims[3] != cells[1])
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "gradients of %lld regions with %lld channels, %lld by %lld, needs "
                            "%lld, %lld, %lld by %lld",
                            (long long)dy->dims[0], (long long)dy->dims[1], (long long)dy->dims[2],
                            (long long)dy->dims[3], (long long)call->in[1]->shape.dims[0],
                            (long long)dx->dims[1], (long long)cells[0], (long long)cells[1]);
    const size_t sums =
        cm_dtype_is_narrow(call->out[0]->type) ? (size_t)cm_tensor_count(call->out[0]) : 0;
    if (!cm_size_add((size_t)dx->dims[2], (size_t)dx->dims[3], &weights) ||
        !cm_size_add(weights, sums, &weights) || !cm_size_mul(weights, sizeof(double), &weights))
        return cm_call_fail(call, CM_LIMIT, "its image is too large");
    cm_call_scratch(call, weights);
    return CM_OK;
}

/* How much each pixel of an axis counts in a cell: weights of pixels [span[0], span[1]). */
static void pixel_weights(const struct cm_extent *e, int64_t cell, double *weights, int64_t span[2])
{
    int64_t from, to;
    cm_extent_inside(e, cell, &from, &to);
    span[0] = e->length;
    span[1] = 0;
    if (from == to)
        return;
    const int64_t ends[2] = {cm_extent_pixels(e, cell, from).low,
                             cm_extent_pixels(e, cell, to - 1).low};
    span[0] = ends[0] < ends[1] ? ends[0] : ends[1];
    span[1] = (ends[0] < ends[1] ? ends[1] : ends[0]) + 1;
    span[1] += span[1] < e->length;
    memset(weights + span[0], 0, (size_t)(span[1] - span[0]) * sizeof *weights);
    for (int64_t i = from; i < to; i++) {
        const struct cm_between at = cm_extent_pixels(e, cell, i);
        weights[at.low] += (1 - at.t) / (double)e->samples;
        weights[at.high] += at.t / (double)e->samples;
    }
}

/* One gradient: pixels[i * width + j] += g * rows[i] * columns[j]. */
#define SPREAD_CELL(ctype)                                                                         \
    static void spread_cell_##ctype(ctype *pixels, int64_t width, double g, const double *rows,    \
                                    const int64_t tall[2], const double *columns,                  \
                                    const int64_t wide[2])                                         \
    {                                                                                              \
        for (int64_t i = tall[0]; i < tall[1]; i++)                                                \
            for (int64_t j = wide[0]; j < wide[1]; j++)                                            \
                pixels[i * width + j] += (ctype)(g * rows[i] * columns[j]);                        \
    }

SPREAD_CELL(float)
SPREAD_CELL(double)

/* All of one region, whose image is the one given. */
static void spread_region(struct cm_call *call, const struct cm_align *align, int64_t roi,
                          int64_t image, void *sums, double *rows)
{
    const struct cm_tensor *dy = call->in[0];
    const struct cm_extent h = cm_align_extent(align, call->in[1], roi, 0);
    const struct cm_extent w = cm_align_extent(align, call->in[1], roi, 1);
    const int64_t channels = dy->shape.dims[1], cells = align->cells[0] * align->cells[1];
    double *columns = rows + h.length;
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t tall[2], wide[2];
        pixel_weights(&h, cell / align->cells[1], rows, tall);
        pixel_weights(&w, cell % align->cells[1], columns, wide);
        for (int64_t c = 0; c < channels; c++) {
            const double g = cm_tensor_real(dy, (roi * channels + c) * cells + cell);
            const int64_t plane = (image * channels + c) * h.length * w.length;
            if (dy->type == CM_DOUBLE)
                spread_cell_double((double *)sums + plane, w.length, g, rows, tall, columns, wide);
            else
                spread_cell_float((float *)sums + plane, w.length, g, rows, tall, columns, wide);
        }
    }
}

static enum cm_status spread_run(struct cm_call *call)
{
    const struct cm_tensor *dy = call->in[0];
    struct cm_tensor *dx = call->out[0];
    const struct cm_align align = cm_align_of(call->node, &dx->shape);
    const bool narrow = cm_dtype_is_narrow(dx->type);
    const int64_t size = cm_tensor_count(dx);
    double *rows = call->scratch;
    void *sums = narrow ? (void *)(rows + align.lengths[0] + align.lengths[1]) : dx->data;
    if (size == 0)
        return CM_OK;
    memset(sums, 0, (size_t)size * (dx->type == CM_DOUBLE ? sizeof(double) : sizeof(float)));
    for (int64_t roi = 0; roi < dy->shape.dims[0]; roi++) {
        const int64_t image = cm_tensor_int(call->in[2], roi);
        CM_TRY(cm_regions_check_image(call, image, dx->shape.dims[0]));
        spread_region(call, &align, roi, image, sums, rows);
    }
    if (narrow)
        cm_narrow_store(dx->type, dx->data, 0, size, sums);
    return CM_OK;
}

/* Linear in dY: its own gradient is the forward operator. */
CM_GRADIENT(spread_grad, "d_dY = RoiAlign" ALIGN_ATTRIBUTES "(d_dX, rois, batch_indices)")

CM_OP_IN(cameo, "ai.cameo", RoiAlignGrad, .infer = spread_infer, .prepare = spread_prepare,
         .run = spread_run, .grad = spread_grad, .body = cm_align_grad_body);

/* ---- ai.cameo::RoiAlignMaxima and MaxRoiPoolMaxima: Indices into X laid in one row, and Weights;
 * where no pixel is the maximum both are 0 ---- */

static void store_peak(struct cm_call *call, int64_t at, struct cm_peak peak)
{
    if (call->out[0])
        ((int64_t *)call->out[0]->data)[at] = peak.place < 0 ? 0 : peak.place;
    if (call->n_out > 1 && call->out[1])
        cm_line_store(cm_line_at(call->out[1], at), peak.place < 0 ? 0 : peak.weight);
}

/* Weights have the shape of Indices. */
static enum cm_status infer_weights(struct cm_infer *in)
{
    const struct cm_type *indices = in->out[0].type;
    if (in->n_out < 2)
        return CM_OK;
    return cm_infer_set_tensor(in, 1, cm_infer_type(in, 0)->dtype, indices->rank, indices->dims);
}

static enum cm_status align_maxima_infer(struct cm_infer *in)
{
    CM_TRY(cm_align_infer(in, CM_INT64));
    return infer_weights(in);
}

static enum cm_status align_maxima_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0], *rois = call->in[1];
    const struct cm_align align = cm_align_of(call->node, &x->shape);
    const int64_t channels = x->shape.dims[1], area = align.lengths[0] * align.lengths[1];
    int64_t at = 0;
    if (rois->shape.dims[0] > 0 && channels > 0 && area == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "there is no pixel to read");
    for (int64_t roi = 0; roi < rois->shape.dims[0]; roi++) {
        const int64_t image = cm_tensor_int(call->in[2], roi);
        CM_TRY(cm_regions_check_image(call, image, x->shape.dims[0]));
        const struct cm_extent h = cm_align_extent(&align, rois, roi, 0);
        const struct cm_extent w = cm_align_extent(&align, rois, roi, 1);
        for (int64_t c = 0; c < channels; c++) {
            const int64_t plane = (image * channels + c) * area;
            for (int64_t ph = 0; ph < align.cells[0]; ph++)
                for (int64_t pw = 0; pw < align.cells[1]; pw++)
                    store_peak(call, at++, cm_align_peak(x, plane, &h, &w, ph, pw));
        }
    }
    return CM_OK;
}

CM_OP_IN(cameo, "ai.cameo", RoiAlignMaxima, .infer = align_maxima_infer, .run = align_maxima_run,
         .grad = cm_grad_none, .body = cm_align_maxima_body);

static enum cm_status pool_maxima_infer(struct cm_infer *in)
{
    CM_TRY(cm_pool_regions_infer(in, CM_INT64));
    return infer_weights(in);
}

static enum cm_status pool_maxima_run(struct cm_call *call)
{
    return cm_pool_regions(call, store_peak);
}

CM_OP_IN(cameo, "ai.cameo", MaxRoiPoolMaxima, .infer = pool_maxima_infer, .run = pool_maxima_run,
         .grad = cm_grad_none, .body = cm_pool_maxima_body);
