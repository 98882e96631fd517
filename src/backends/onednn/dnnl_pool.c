/* Pooling: MaxPool without indices, AveragePool, GlobalAveragePool, GlobalMaxPool. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/finite.h"
#include "tensor/layout.h"

#include <math.h>
#include <string.h>

/* ceil_mode: the last window may reach beyond the padding. */
static bool stretch(struct cm_call *call, struct cm_dnnl_window *w, enum cm_dnnl_pooling kind)
{
    for (int axis = 0; axis < w->rank; axis++) {
        const int64_t size = call->in[0]->shape.dims[axis + 2];
        const int64_t result = call->out[0]->shape.dims[axis + 2];
        const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
        const int64_t needs =
            (result - 1) * w->stride[axis] + extent - size - w->pad_begin[axis] - w->pad_end[axis];
        if (needs > 0 && kind == CM_DNNL_AVERAGE_ALL)
            return cm_call_decline(call, "a window reaches beyond the padding that counts");
        if (needs > 0)
            w->pad_end[axis] += needs;
        if (w->pad_begin[axis] >= extent || w->pad_end[axis] >= extent)
            return cm_call_decline(call, "a window lies in the padding alone");
        if (kind != CM_DNNL_MAX && w->dilation[axis] != 1)
            return cm_call_decline(call, "the window has holes");
    }
    return true;
}

/* Decided by x: it is left as it lies. */
static bool make(struct cm_call *call, enum cm_dnnl_pooling kind, const int64_t *kernel,
                 bool is_global)
{
    const int rank = call->in[0]->shape.rank - 2;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "the image has %d spatial axes", rank);
    struct cm_dnnl_pool pool = {.kind = kind};
    if (is_global) {
        pool.window.rank = rank;
        for (int axis = 0; axis < rank; axis++) {
            pool.window.kernel[axis] = kernel[axis];
            pool.window.stride[axis] = pool.window.dilation[axis] = 1;
        }
    } else if (!cm_dnnl_read_window(call, call->node, &call->in[0]->shape, kernel, &pool.window) ||
               !stretch(call, &pool.window, kind)) {
        return false;
    }
    if (!cm_dnnl_operand(call, CM_DNNL_IN(0), CM_DNNL_GIVEN, &pool.x) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0),
                         cm_dnnl_has_layout(call, 0) ? CM_DNNL_FREE : CM_DNNL_PLAIN, &pool.y))
        return false;
    return cm_dnnl_make_pool(call, &pool);
}

struct pooling {
    enum cm_dnnl_pooling kind;
    bool is_global; /* the window is the whole image */
};

static bool accepts(struct cm_call *call)
{
    const struct pooling *p = call->arg;
    const struct cm_int64s kernel = cm_node_ints(call->node, "kernel_shape");
    if (call->n_out > 1 && call->out[1])
        return cm_call_decline(call, "indices are wanted");
    if (!cm_dnnl_suits(call))
        return false;
    if (p->is_global)
        return make(call, p->kind, call->in[0]->shape.dims + 2, true);
    if (kernel.count + 2 != (size_t)call->in[0]->shape.rank)
        return cm_call_decline(call, "kernel_shape is missing");
    return make(call, cm_node_int(call->node, "count_include_pad") ? CM_DNNL_AVERAGE_ALL : p->kind,
                kernel.items, false);
}

/* ---- what oneDNN does not do: NaN is skipped, and of -inf alone the lowest float is made ---- */

/* A window on one axis: taps [first, end) of it lie inside the tensor, tap t at at + t * step. */
struct reach {
    int64_t at, step, first, end;
};

static struct reach clip(int64_t at, int64_t kernel, int64_t step, int64_t size)
{
    const int64_t before = at < 0 ? (-at - 1) / step + 1 : 0;
    const int64_t inside = at < size ? (size - at - 1) / step + 1 : 0;
    return (struct reach){at, step, before, inside < kernel ? inside : kernel};
}

/* The largest in a window, NaN above all. */
static float largest(const float *x, const int64_t *dims, const struct reach r[3])
{
    float best = -INFINITY;
    for (int64_t a = r[0].first; a < r[0].end; a++) {
        for (int64_t b = r[1].first; b < r[1].end; b++) {
            const int64_t i = r[0].at + a * r[0].step, j = r[1].at + b * r[1].step;
            const float *row = x + (i * dims[1] + j) * dims[2];
            for (int64_t c = r[2].first; c < r[2].end; c++) {
                const float v = row[r[2].at + c * r[2].step];
                if (isnan(v))
                    return v;
                best = v > best ? v : best;
            }
        }
    }
    return best;
}

/* Axes that are not there have length 1, after those that are. */
static void fill_axes(const struct cm_tensor *t, int64_t dims[3])
{
    for (int i = 0; i < 3; i++)
        dims[i] = i + 2 < t->shape.rank ? t->shape.dims[i + 2] : 1;
}

struct plain {
    const float *x;
    float *y;
    const struct cm_dnnl_window *window;
    int64_t in[3], out[3];
};

static struct reach reach_of(const struct plain *plain, int axis, int64_t o)
{
    const struct cm_dnnl_window *w = plain->window;
    return clip(o * w->stride[axis] - w->pad_begin[axis], w->kernel[axis], w->dilation[axis],
                plain->in[axis]);
}

/* Planes [begin, end). */
static void pool_planes(void *arg, int64_t begin, int64_t end)
{
    const struct plain *plain = arg;
    const int64_t *in = plain->in, *out = plain->out;
    float *to = plain->y + begin * out[0] * out[1] * out[2];
    for (int64_t p = begin; p < end; p++) {
        const float *plane = plain->x + p * in[0] * in[1] * in[2];
        for (int64_t i = 0; i < out[0]; i++) {
            for (int64_t j = 0; j < out[1]; j++) {
                struct reach r[3] = {reach_of(plain, 0, i), reach_of(plain, 1, j)};
                for (int64_t k = 0; k < out[2]; k++) {
                    r[2] = reach_of(plain, 2, k);
                    *to++ = largest(plane, in, r);
                }
            }
        }
    }
}

static void pool_plain(const struct cm_tensor *x, const struct cm_dnnl_window *w,
                       struct cm_tensor *y)
{
    struct plain plain = {.x = x->data, .y = y->data, .window = w};
    fill_axes(x, plain.in);
    fill_axes(y, plain.out);
    cm_parallel(y->shape.dims[0] * y->shape.dims[1], 1, pool_planes, &plain);
}

static enum cm_status pool_again(struct cm_call *call, const struct cm_dnnl_window *w)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0], from = {0}, to = {0};
    enum cm_status status = CM_OK;
    if (x->layout) {
        CM_TRY(cm_tensor_new(CM_FLOAT, &x->shape, &from, call->err));
        status = x->layout->reorder(x, &from, call->err);
    }
    if (!status && y->layout)
        status = cm_tensor_new(CM_FLOAT, &y->shape, &to, call->err);
    if (!status)
        pool_plain(x->layout ? &from : x, w, y->layout ? &to : y);
    if (!status && y->layout)
        status = y->layout->reorder(&to, y, call->err);
    cm_tensor_drop(&from);
    cm_tensor_drop(&to);
    return status;
}

static enum cm_status max_run(struct cm_call *call)
{
    const bool is_global = ((const struct pooling *)call->arg)->is_global;
    const int64_t *kernel =
        is_global ? call->in[0]->shape.dims + 2 : cm_node_ints(call->node, "kernel_shape").items;
    CM_TRY(cm_dnnl_run(call));
    if (cm_tensor_is_finite(call->in[0]))
        return CM_OK;
    struct cm_dnnl_window w = {.rank = 0};
    if (is_global)
        memcpy(w.kernel, kernel, (size_t)(call->in[0]->shape.rank - 2) * sizeof *kernel);
    else if (!cm_dnnl_read_window(call, call->node, &call->in[0]->shape, kernel, &w))
        return cm_call_fail(call, CM_UNSUPPORTED, "its window cannot be read");
    for (int i = call->in[0]->shape.rank - 2; i < 3; i++)
        w.kernel[i] = 1;
    for (int i = 0; i < 3; i++) {
        w.stride[i] = w.stride[i] ? w.stride[i] : 1;
        w.dilation[i] = w.dilation[i] ? w.dilation[i] : 1;
    }
    return pool_again(call, &w);
}

static const struct pooling max = {CM_DNNL_MAX, false}, global_max = {CM_DNNL_MAX, true};
static const struct pooling average = {CM_DNNL_AVERAGE_REAL, false};
static const struct pooling global_average = {CM_DNNL_AVERAGE_ALL, true};

#define POOLING .label = "oneDNN pooling", .accepts = accepts

CM_KERNEL(onednn, AveragePool, POOLING, CM_DNNL_RUNS, .arg = &average);
CM_KERNEL(onednn, GlobalAveragePool, POOLING, CM_DNNL_RUNS, .arg = &global_average);
CM_KERNEL(onednn, MaxPool, POOLING, .prepare = cm_dnnl_prepare, .run = max_run,
          .layouts = CM_LAYOUT_CHOSEN, .arg = &max);
CM_KERNEL(onednn, GlobalMaxPool, POOLING, .prepare = cm_dnnl_prepare, .run = max_run,
          .layouts = CM_LAYOUT_CHOSEN, .arg = &global_max);
