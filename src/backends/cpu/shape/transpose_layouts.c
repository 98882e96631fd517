/* Transposes that only move the channels to the end or back, between convolutions with channels
 * last and what has them last by its shape: the bytes stay as they are. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/channels_last.h"
#include "backends/product_body.h"

#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/layout.h"

#include <string.h>

enum direction { OTHER, TO_END, FROM_END };

static enum direction direction_of(const struct cm_node *node, int rank)
{
    const struct cm_int64s perm = cm_node_ints(node, "perm");
    bool to_end = perm.count == (size_t)rank && rank >= 3, from_end = to_end;
    for (int i = 0; (to_end || from_end) && i < rank; i++) {
        to_end = to_end && perm.items[i] == (i == 0 ? 0 : i == rank - 1 ? 1 : i + 1);
        from_end = from_end && perm.items[i] == (i == 0 ? 0 : i == 1 ? rank - 1 : i - 1);
    }
    return to_end ? TO_END : from_end ? FROM_END : OTHER;
}

static bool is_convolution(const struct cm_node *node)
{
    if (node && node->n_bodies == 1 && cm_str_is(node->op_type, "ProductRegion"))
        node = cm_body_of(node)->first;
    return node && cm_body_is(node, "Conv");
}

/* Is every reader of the result a convolution? */
static bool is_for_convolutions(const struct cm_node *node)
{
    const struct cm_use *use = cm_value_get(node->module, node->outputs[0])->uses;
    for (; use; use = use->next)
        if (!is_convolution(use->node))
            return false;
    return cm_value_get(node->module, node->outputs[0])->n_uses > 0;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const enum direction direction = direction_of(call->node, x->shape.rank);
    if (x->type != CM_FLOAT || direction == OTHER || cm_tensor_count(x) == 0 ||
        x->shape.rank > 2 + CM_CHANNELS_LAST_AXES || !cm_channels_last_found())
        return cm_call_decline(call, "the node does more than move channels of floats");
    if (direction == FROM_END)
        return (!x->layout && is_for_convolutions(call->node)) ||
               cm_call_decline(call, "the result is not for convolutions alone");
    return (x->layout && x->layout->channel_block == x->shape.dims[1] &&
            cm_tensor_bytes(x) == x->layout->bytes) ||
           cm_call_decline(call, "the operand does not have channels last in memory");
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_layout *layout;
    if (direction_of(call->node, call->in[0]->shape.rank) == TO_END) {
        cm_call_want_layout(call, 0, call->in[0]->layout);
        return CM_OK;
    }
    CM_TRY(cm_channels_last(call, &call->out[0]->shape, &layout));
    cm_call_give_layout(call, 0, layout);
    return CM_OK;
}

static void copy(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    memcpy((float *)call->out[0]->data + begin, (const float *)call->in[0]->data + begin,
           (size_t)(end - begin) * sizeof(float));
}

static enum cm_status run(struct cm_call *call)
{
    enum { GRAIN = 1 << 15 }; /* elements */
    cm_parallel(cm_tensor_count(call->in[0]), GRAIN, copy, call);
    return CM_OK;
}

CM_KERNEL(cpu, Transpose, .label = "channels-last transpose", .accepts = accepts,
          .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
