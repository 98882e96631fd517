/* Running one-operand elementwise loops. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include "tensor/half.h"

enum { BLOCK = 1024 }; /* floats converted at a time: stays in the first-level cache */

static void run_narrow(enum cm_dtype type, int64_t count, const void *x, void *y, cm_unary_fn *loop,
                       const double *p)
{
    float block[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        cm_narrow_load(type, x, at, n, block);
        loop(n, block, block, p);
        cm_narrow_store(type, y, at, n, block);
    }
}

enum cm_status cm_run_unary(struct cm_call *call, cm_unary_fn *const *loops, const double *p)
{
    const struct cm_tensor *x = call->in[0];
    const int64_t count = cm_tensor_count(x);

    if (loops[x->type]) {
        loops[x->type](count, x->data, call->out[0]->data, p);
        return CM_OK;
    }
    if (cm_dtype_is_narrow(x->type) && cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT &&
        loops[CM_FLOAT]) {
        run_narrow(x->type, count, x->data, call->out[0]->data, loops[CM_FLOAT], p);
        return CM_OK;
    }
    return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
}

enum cm_status cm_unary_prepare(struct cm_call *call)
{
    const struct cm_unary *row = call->op->arg;
    double *p = cm_call_state(call, CM_UNARY_PARAMETERS * sizeof *p);
    for (int i = 0; i < CM_UNARY_PARAMETERS && row->parameters[i]; i++)
        p[i] = (double)cm_node_float(call->node, row->parameters[i]);
    return CM_OK;
}

enum cm_status cm_unary_run(struct cm_call *call)
{
    const struct cm_unary *row = call->op->arg;
    return cm_run_unary(call, row->loops, call->state);
}

enum cm_status cm_unary_grad(struct cm_grad *g)
{
    const struct cm_unary *row = g->node->op->arg;
    const cm_value slope = row->slope(g, cm_grad_input(g, 0), cm_grad_output(g, 0));
    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_grad_incoming(g, 0), slope));
}

enum cm_sharing cm_share_elementwise(const struct cm_node *node, int output, int input)
{
    (void)node, (void)input;
    return output == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}
