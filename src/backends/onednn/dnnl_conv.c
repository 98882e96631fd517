/* Convolution of one to three spatial axes, with groups and bias. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

/* (out, in / groups, kernel..) as (groups, out / groups, in / groups, kernel..): the same bytes. */
static void split_groups(struct cm_dnnl_operand *weights, int64_t groups)
{
    memmove(weights->dims + 1, weights->dims, (size_t)weights->rank * sizeof weights->dims[0]);
    weights->rank++;
    weights->dims[0] = groups;
    weights->dims[1] /= groups;
}

/* Channels last comes first: it is as fast as blocks of channels, never needs padding, and steps
 * that work element by element or by channel can keep it. */
static bool choose_order(struct cm_call *call, struct cm_dnnl_conv *conv)
{
    static const struct {
        enum cm_dnnl_order order;
        bool direct;
    } wishes[] = {
        {CM_DNNL_CHANNELS_LAST, true},
        {CM_DNNL_FREE, true},
        {CM_DNNL_GIVEN, false},
        {CM_DNNL_FREE, false},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        conv->x.order = wishes[i].order;
        conv->y.order = wishes[i].order == CM_DNNL_GIVEN ? CM_DNNL_FREE : wishes[i].order;
        conv->direct = wishes[i].direct;
        if (cm_dnnl_make_conv(call, conv))
            return true;
    }
    return false;
}

static bool conv_accepts(struct cm_call *call)
{
    if (!cm_dnnl_suits(call))
        return false;
    const int rank = call->in[0]->shape.rank - 2;
    if (rank < 1 || rank > 3)
        return cm_call_decline(call, "it has %d spatial axes", rank);
    struct cm_dnnl_conv conv;
    if (!cm_dnnl_operand(call, CM_DNNL_IN(0), CM_DNNL_FREE, &conv.x) ||
        !cm_dnnl_operand(call, CM_DNNL_IN(1), CM_DNNL_FREE, &conv.weights) ||
        !cm_dnnl_operand(call, CM_DNNL_IN(2), CM_DNNL_PLAIN, &conv.bias) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_FREE, &conv.y))
        return cm_call_decline(call, "its rank is too high");
    const int64_t groups = cm_node_int(call->node, "group");
    if (!cm_dnnl_read_window(call, call->in[1]->shape.dims + 2, &conv.window))
        return false;
    if (groups > 1)
        split_groups(&conv.weights, groups);
    return choose_order(call, &conv);
}

CM_KERNEL(onednn, Conv, .accepts = conv_accepts, .prepare = cm_dnnl_prepare, .run = cm_dnnl_run,
          .layouts = CM_LAYOUT_CHOSEN);
