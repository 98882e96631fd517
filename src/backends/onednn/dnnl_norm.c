/* Normalization by channel: BatchNormalization as inference has it, LRN. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"
#include "graph/backend.h"

static bool batch_norm_accepts(struct cm_call *call)
{
    if (!cm_dnnl_suits(call))
        return false;
    if (cm_node_int(call->node, "training_mode"))
        return cm_call_decline(call, "the node is in training mode");
    if (call->in[0]->shape.rank < 2 || call->in[0]->shape.rank > 5)
        return cm_call_decline(call, "the image has rank %d", call->in[0]->shape.rank);
    struct cm_dnnl_batch_norm norm = {.epsilon = cm_node_float(call->node, "epsilon")};
    struct cm_dnnl_operand *const by_channel[] = {&norm.scale, &norm.shift, &norm.mean,
                                                  &norm.variance};
    for (int i = 0; i < 4; i++)
        if (!cm_dnnl_operand(call, CM_DNNL_IN(i + 1), CM_DNNL_PLAIN, by_channel[i]))
            return false;
    if (!cm_dnnl_operand(call, CM_DNNL_IN(0), CM_DNNL_GIVEN, &norm.x) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_GIVEN, &norm.y))
        return false;
    return cm_dnnl_make_batch_norm(call, &norm);
}

static bool lrn_accepts(struct cm_call *call)
{
    if (!cm_dnnl_suits(call))
        return false;
    struct cm_dnnl_lrn lrn = {
        .size = cm_node_int(call->node, "size"),
        .alpha = cm_node_float(call->node, "alpha"),
        .beta = cm_node_float(call->node, "beta"),
        .bias = cm_node_float(call->node, "bias"),
    };
    /* An even window has no middle: ONNX and oneDNN lay it differently. */
    if (lrn.size < 1 || lrn.size % 2 == 0)
        return cm_call_decline(call, "the size is even");
    if (call->in[0]->shape.rank != 4)
        return cm_call_decline(call, "the image has rank %d", call->in[0]->shape.rank);
    if (!cm_dnnl_operand(call, CM_DNNL_IN(0), CM_DNNL_GIVEN, &lrn.x) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_GIVEN, &lrn.y))
        return false;
    return cm_dnnl_make_lrn(call, &lrn);
}

CM_KERNEL(onednn, BatchNormalization, .label = "oneDNN normalization",
          .accepts = batch_norm_accepts, CM_DNNL_RUNS);
CM_KERNEL(onednn, LRN, .label = "oneDNN normalization", .accepts = lrn_accepts, CM_DNNL_RUNS);
