/* Pooling: MaxPool without indices, AveragePool, GlobalAveragePool, GlobalMaxPool. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

#include "graph/backend.h"
#include "tensor/finite.h"
#include "tensor/layout.h"

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

struct max_call {
    void *work;      /* oneDNN's part */
    void *reference; /* what the reference kernel prepared */
};

static enum cm_status max_prepare(struct cm_call *call)
{
    struct cm_call plain = *call;
    CM_TRY(call->op->prepare(&plain));
    struct max_call made = {.work = call->state, .reference = plain.state};
    CM_TRY(cm_dnnl_prepare(call));
    *(struct max_call *)cm_call_state(call, sizeof made) = made;
    return CM_OK;
}

/* By the reference kernel, which reads and writes rows. */
static enum cm_status pool_again(struct cm_call *call, void *state)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0], from = {0}, to = {0};
    struct cm_call plain = *call;
    plain.state = state;
    plain.in = (const struct cm_tensor *[]){x->layout ? &from : x};
    plain.out = (struct cm_tensor *[]){y->layout ? &to : y, NULL};
    enum cm_status status = CM_OK;
    if (x->layout) {
        CM_TRY(cm_tensor_new(CM_FLOAT, &x->shape, &from, call->err));
        status = x->layout->reorder(x, &from, call->err);
    }
    if (!status && y->layout)
        status = cm_tensor_new(CM_FLOAT, &y->shape, &to, call->err);
    if (!status)
        status = call->op->run(&plain);
    if (!status && y->layout)
        status = y->layout->reorder(&to, y, call->err);
    cm_tensor_drop(&from);
    cm_tensor_drop(&to);
    return status;
}

static enum cm_status max_run(struct cm_call *call)
{
    const struct max_call *made = call->state;
    CM_TRY(cm_dnnl_run_state(call, made->work));
    return cm_tensor_is_finite(call->in[0]) ? CM_OK : pool_again(call, made->reference);
}

static const struct pooling max = {CM_DNNL_MAX, false}, global_max = {CM_DNNL_MAX, true};
static const struct pooling average = {CM_DNNL_AVERAGE_REAL, false};
static const struct pooling global_average = {CM_DNNL_AVERAGE_ALL, true};

#define POOLING .label = "oneDNN pooling", .accepts = accepts

CM_KERNEL(onednn, AveragePool, POOLING, CM_DNNL_RUNS, .arg = &average);
CM_KERNEL(onednn, GlobalAveragePool, POOLING, CM_DNNL_RUNS, .arg = &global_average);
CM_KERNEL(onednn, MaxPool, POOLING, .prepare = max_prepare, .run = max_run,
          .layouts = CM_LAYOUT_CHOSEN, .arg = &max);
CM_KERNEL(onednn, GlobalMaxPool, POOLING, .prepare = max_prepare, .run = max_run,
          .layouts = CM_LAYOUT_CHOSEN, .arg = &global_max);
