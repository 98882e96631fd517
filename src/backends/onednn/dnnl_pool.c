/* Pooling: MaxPool without indices, AveragePool, GlobalAveragePool, GlobalMaxPool. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

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
            return cm_call_decline(call, "its window has holes");
    }
    return true;
}

/* Decided by x: it is left as it lies. */
static bool make(struct cm_call *call, enum cm_dnnl_pooling kind, const int64_t *kernel,
                 bool is_global)
{
    const int rank = call->in[0]->shape.rank - 2;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "it has %d spatial axes", rank);
    struct cm_dnnl_pool pool = {.kind = kind};
    if (is_global) {
        pool.window.rank = rank;
        for (int axis = 0; axis < rank; axis++) {
            pool.window.kernel[axis] = kernel[axis];
            pool.window.stride[axis] = pool.window.dilation[axis] = 1;
        }
    } else if (!cm_dnnl_read_window(call, kernel, &pool.window) ||
               !stretch(call, &pool.window, kind)) {
        return false;
    }
    if (!cm_dnnl_operand(call, CM_DNNL_IN(0), CM_DNNL_GIVEN, &pool.x) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0),
                         cm_dnnl_has_layout(call, 0) ? CM_DNNL_FREE : CM_DNNL_PLAIN, &pool.y))
        return cm_call_decline(call, "its rank is too high");
    return cm_dnnl_make_pool(call, &pool);
}

static bool pool_accepts(struct cm_call *call, enum cm_dnnl_pooling kind)
{
    if (!cm_dnnl_suits(call))
        return false;
    const struct cm_int64s kernel = cm_node_ints(call->node, "kernel_shape");
    if (kernel.count + 2 != (size_t)call->in[0]->shape.rank)
        return cm_call_decline(call, "kernel_shape is missing");
    return make(call, kind, kernel.items, false);
}

static bool max_accepts(struct cm_call *call)
{
    if (call->n_out > 1 && call->out[1])
        return cm_call_decline(call, "indices are wanted");
    return pool_accepts(call, CM_DNNL_MAX);
}

static bool average_accepts(struct cm_call *call)
{
    return pool_accepts(call, cm_node_int(call->node, "count_include_pad") ? CM_DNNL_AVERAGE_ALL
                                                                           : CM_DNNL_AVERAGE_REAL);
}

static bool global_average_accepts(struct cm_call *call)
{
    return cm_dnnl_suits(call) &&
           make(call, CM_DNNL_AVERAGE_ALL, call->in[0]->shape.dims + 2, true);
}

static bool global_max_accepts(struct cm_call *call)
{
    return cm_dnnl_suits(call) && make(call, CM_DNNL_MAX, call->in[0]->shape.dims + 2, true);
}

CM_KERNEL(onednn, MaxPool, .accepts = max_accepts, .prepare = cm_dnnl_prepare, .run = cm_dnnl_run,
          .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(onednn, AveragePool, .accepts = average_accepts, .prepare = cm_dnnl_prepare,
          .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(onednn, GlobalAveragePool, .accepts = global_average_accepts, .prepare = cm_dnnl_prepare,
          .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL(onednn, GlobalMaxPool, .accepts = global_max_accepts, .prepare = cm_dnnl_prepare,
          .run = cm_dnnl_run, .layouts = CM_LAYOUT_CHOSEN);
