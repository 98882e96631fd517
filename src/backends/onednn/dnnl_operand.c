/* Reading calls: types, sizes, windows. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

#include "backends/window_axis.h"

bool cm_dnnl_operand(struct cm_call *call, int place, enum cm_dnnl_order order,
                     struct cm_dnnl_operand *out)
{
    const int i = place < 0 ? ~place : place;
    const struct cm_tensor *tensor = place < 0 ? call->out[i] : i < call->n_in ? call->in[i] : NULL;
    *out = (struct cm_dnnl_operand){.place = place, .order = order};
    if (!tensor)
        return true;
    if (tensor->shape.rank < 1 || tensor->shape.rank > CM_DNNL_MAX_RANK)
        return cm_call_decline(call, "an operand is a scalar or has more than %d axes",
                               CM_DNNL_MAX_RANK);
    out->rank = tensor->shape.rank;
    memcpy(out->dims, tensor->shape.dims, (size_t)out->rank * sizeof out->dims[0]);
    return true;
}

static bool suits(struct cm_call *call, const struct cm_tensor *tensor)
{
    int64_t count;
    if (!tensor)
        return true;
    if (tensor->type != CM_FLOAT)
        return cm_call_decline_type(call, tensor);
    if (!cm_shape_count(&tensor->shape, &count) || count > INT32_MAX)
        return cm_call_decline(call, "%s has more than 2^31 - 1 elements",
                               cm_call_describe(call, tensor).text);
    if (count == 0)
        return cm_call_decline_empty(call, tensor);
    return true;
}

bool cm_dnnl_suits(struct cm_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (!suits(call, call->in[i]))
            return false;
    for (int o = 0; o < call->n_out; o++)
        if (!suits(call, call->out[o]))
            return false;
    return true;
}

bool cm_dnnl_has_layout(const struct cm_call *call, int i)
{
    return call->in[i] && call->in[i]->layout;
}

bool cm_dnnl_read_window_to(struct cm_call *call, const struct cm_node *node,
                            const struct cm_shape *x, const struct cm_shape *y,
                            const int64_t *kernel, struct cm_dnnl_window *out)
{
    *out = (struct cm_dnnl_window){.rank = x->rank - 2};
    for (int axis = 0; axis < out->rank; axis++) {
        struct cm_window_axis a;
        if (!cm_window_axis_read(call, node, axis, out->rank, kernel[axis], x->dims[axis + 2],
                                 y->dims[axis + 2], &a))
            return false;
        out->kernel[axis] = a.kernel;
        out->stride[axis] = a.stride;
        out->dilation[axis] = a.dilation;
        out->pad_begin[axis] = a.pad_begin;
        out->pad_end[axis] = a.pad_end;
    }
    return true;
}

bool cm_dnnl_read_window(struct cm_call *call, const struct cm_node *node, const struct cm_shape *x,
                         const int64_t *kernel, struct cm_dnnl_window *out)
{
    return cm_dnnl_read_window_to(call, node, x, &call->out[0]->shape, kernel, out);
}
