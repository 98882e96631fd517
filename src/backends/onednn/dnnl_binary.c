/* Arithmetic of a tensor that lies in a layout of ours with one that does not: a value by channel,
 * a plain tensor of the same shape. What lies the same on both sides is left to the plain kernels.
 */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_operand.h"

#include "graph/backend.h"
#include "tensor/layout.h"

/* The operand at `place` with as many axes as the result has, missing ones being 1. */
static void set_aligned(struct cm_dnnl_operand *operand, const struct cm_call *call, int place,
                        int rank)
{
    const struct cm_shape *shape = &call->in[place]->shape;
    const int missing = rank - shape->rank;
    *operand = (struct cm_dnnl_operand){.place = CM_DNNL_IN(place), .rank = rank};
    for (int i = 0; i < rank; i++)
        operand->dims[i] = i < missing ? 1 : shape->dims[i - missing];
}

/* The first operand decides the layout and has the shape of the result. */
static bool may_lead(const struct cm_call *call, int i)
{
    return cm_dnnl_has_layout(call, i) && cm_shape_equal(&call->in[i]->shape, &call->out[0]->shape);
}

static bool accepts(struct cm_call *call)
{
    const enum cm_dnnl_joining kind = *(const enum cm_dnnl_joining *)call->arg;
    if (!cm_dnnl_suits(call))
        return false;
    if (cm_dnnl_has_layout(call, 0) && cm_dnnl_has_layout(call, 1) &&
        cm_shape_equal(&call->in[0]->shape, &call->in[1]->shape) &&
        cm_layout_equal(call->in[0]->layout, call->in[1]->layout))
        return cm_call_decline(call, "both operands have the same layout");
    const bool commutes = kind == CM_DNNL_ADD || kind == CM_DNNL_MUL;
    const int lead = may_lead(call, 0) ? 0 : may_lead(call, 1) && commutes ? 1 : -1;
    if (lead < 0)
        return cm_call_decline(call, "the operands have a plain layout");
    const int rank = call->out[0]->shape.rank;
    struct cm_dnnl_binary binary = {.kind = kind};
    if (!cm_dnnl_operand(call, CM_DNNL_IN(lead), CM_DNNL_GIVEN, &binary.a) ||
        !cm_dnnl_operand(call, CM_DNNL_OUT(0), CM_DNNL_GIVEN, &binary.y))
        return false;
    set_aligned(&binary.b, call, 1 - lead, rank);
    if (cm_shape_equal(&call->in[1 - lead]->shape, &call->out[0]->shape))
        binary.b.order = CM_DNNL_CHANNELS_LAST;
    return cm_dnnl_make_binary(call, &binary);
}

static const enum cm_dnnl_joining kinds[] = {CM_DNNL_ADD, CM_DNNL_SUB, CM_DNNL_MUL, CM_DNNL_DIV};

#define ARITHMETIC .label = "oneDNN arithmetic", .accepts = accepts, CM_DNNL_RUNS

CM_KERNEL(onednn, Add, ARITHMETIC, .arg = &kinds[0]);
CM_KERNEL(onednn, Sub, ARITHMETIC, .arg = &kinds[1]);
CM_KERNEL(onednn, Mul, ARITHMETIC, .arg = &kinds[2]);
CM_KERNEL(onednn, Div, ARITHMETIC, .arg = &kinds[3]);
