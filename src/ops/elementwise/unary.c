/* Running one-operand elementwise loops. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include "base/parallel.h"
#include "tensor/half.h"

enum {
    BLOCK = 1024,    /* floats converted at a time: stays in the first-level cache */
    GRAIN = 1 << 16, /* elements worth a thread; whole bytes of every packed type */
};

struct job {
    enum cm_dtype type;
    const char *x;
    char *y;
    cm_unary_fn *loop;
    const double *p;
};

static void run_native(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const int64_t size = (int64_t)cm_dtype_size(job->type);
    job->loop(end - begin, job->x + begin * size, job->y + begin * size, job->p);
}

static void run_narrow(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    float block[BLOCK];
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t n = end - at < BLOCK ? end - at : BLOCK;
        cm_narrow_load(job->type, job->x, at, n, block);
        job->loop(n, block, block, job->p);
        cm_narrow_store(job->type, job->y, at, n, block);
    }
}

enum cm_status cm_run_unary(struct cm_call *call, cm_unary_fn *const *loops, const double *p)
{
    const struct cm_tensor *x = call->in[0];
    const int64_t count = cm_tensor_count(x);
    const bool narrow = !loops[x->type] && cm_dtype_is_narrow(x->type) &&
                        cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT;
    struct job job = {x->type, x->data, call->out[0]->data, loops[narrow ? CM_FLOAT : x->type], p};

    if (job.loop) {
        cm_parallel(count, GRAIN, narrow ? run_narrow : run_native, &job);
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
