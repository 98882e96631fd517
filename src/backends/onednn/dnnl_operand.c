/* Reading calls: types, sizes, windows. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

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

/* auto_pad SAME: what the output needs beyond the input, split in two; the odd one goes to the end
 * (upper) or to the beginning (lower). */
static void same_pads(struct cm_dnnl_window *w, int axis, int64_t size, int64_t result, bool upper)
{
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t reach = (result - 1) * w->stride[axis] + extent;
    const int64_t total = reach > size ? reach - size : 0;
    w->pad_begin[axis] = upper ? total / 2 : total - total / 2;
    w->pad_end[axis] = total - w->pad_begin[axis];
}

enum { MOST = 1 << 20 }; /* of any attribute: products of two and sums of products fit in 64 bits */

static bool read_axis(struct cm_call *call, const struct cm_node *node, const struct cm_shape *x,
                      const struct cm_shape *y, struct cm_dnnl_window *w, int axis)
{
    const struct cm_int64s strides = cm_node_ints(node, "strides");
    const struct cm_int64s dilations = cm_node_ints(node, "dilations");
    const struct cm_int64s pads = cm_node_ints(node, "pads");
    const struct cm_str automatic = cm_node_str(node, "auto_pad");
    const size_t at = (size_t)axis, rank = (size_t)w->rank;
    const int64_t size = x->dims[axis + 2];
    const int64_t result = y->dims[axis + 2];
    w->stride[axis] = at < strides.count ? strides.items[at] : 1;
    w->dilation[axis] = at < dilations.count ? dilations.items[at] : 1;
    if (w->kernel[axis] > MOST || w->stride[axis] > MOST || w->dilation[axis] > MOST)
        return cm_call_decline(call, "the window is larger than oneDNN's sizes go");
    if (cm_str_is(automatic, "SAME_UPPER") || cm_str_is(automatic, "SAME_LOWER"))
        same_pads(w, axis, size, result, cm_str_is(automatic, "SAME_UPPER"));
    else if (!cm_str_is(automatic, "VALID") && pads.count == 2 * rank) {
        w->pad_begin[axis] = pads.items[at];
        w->pad_end[axis] = pads.items[at + rank];
    }
    if (w->pad_begin[axis] < 0 || w->pad_end[axis] < 0)
        return cm_call_decline(call, "the padding is negative");
    if (w->pad_begin[axis] > MOST || w->pad_end[axis] > MOST)
        return cm_call_decline(call, "the window is larger than oneDNN's sizes go");
    return true;
}

bool cm_dnnl_read_window_to(struct cm_call *call, const struct cm_node *node,
                            const struct cm_shape *x, const struct cm_shape *y,
                            const int64_t *kernel, struct cm_dnnl_window *out)
{
    *out = (struct cm_dnnl_window){.rank = x->rank - 2};
    for (int axis = 0; axis < out->rank; axis++) {
        out->kernel[axis] = kernel[axis];
        if (!read_axis(call, node, x, y, out, axis))
            return false;
    }
    return true;
}

bool cm_dnnl_read_window(struct cm_call *call, const struct cm_node *node, const struct cm_shape *x,
                         const int64_t *kernel, struct cm_dnnl_window *out)
{
    return cm_dnnl_read_window_to(call, node, x, &call->out[0]->shape, kernel, out);
}
