/* Concat of tensors that lie with channels last: they stay so. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"
#include "graph/backend.h"

enum { MOST_INPUTS = 64 };

static bool concat_accepts(struct cm_call *call)
{
    struct cm_dnnl_operand x[MOST_INPUTS], y;
    bool any = false;
    if (!cm_dnnl_suits(call))
        return false;
    if (call->n_in > MOST_INPUTS)
        return cm_call_decline(call, "the node has %d inputs", call->n_in);
    for (int i = 0; i < call->n_in; i++)
        any = any || cm_dnnl_has_layout(call, i);
    if (!any)
        return cm_call_decline(call, "the operands have a plain layout");
    for (int i = 0; i < call->n_in; i++)
        if (!cm_dnnl_operand(call, CM_DNNL_IN(i), CM_DNNL_CHANNELS_LAST, &x[i]))
            return false;
    if (!cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_CHANNELS_LAST, &y))
        return false;
    const int64_t axis = cm_node_int(call->node, "axis");
    return cm_dnnl_make_concat(call, x, call->n_in, (int)(axis < 0 ? axis + y.rank : axis), &y);
}

CM_KERNEL(onednn, Concat, .label = "oneDNN concatenation", .accepts = concat_accepts, CM_DNNL_RUNS);
