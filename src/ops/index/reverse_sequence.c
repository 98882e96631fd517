/* ReverseSequence: the beginning of each sequence of a batch, turned around. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"

/* The axes are the first two, one each. */
static bool read_axes(const struct cm_node *node, int *batch, int *time)
{
    const int64_t b = cm_node_int(node, "batch_axis"), t = cm_node_int(node, "time_axis");
    *batch = b == 1;
    *time = t == 1;
    return (b == 0 || b == 1) && (t == 0 || t == 1) && b != t;
}

static enum cm_status reverse_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *lens = cm_infer_type(in, 1);
    int batch, time;
    struct cm_dim both;
    if (!read_axes(in->node, &batch, &time))
        return cm_infer_fail(in, "batch_axis and time_axis must be 0 and 1, or 1 and 0");
    CM_TRY(cm_infer_rank(in, 0, 2, CM_MAX_RANK));
    CM_TRY(cm_infer_rank(in, 1, 1, 1));
    if (x->rank != CM_RANK_UNKNOWN && lens->rank == 1 &&
        !cm_dim_unify(x->dims[batch], lens->dims[0], &both))
        return cm_infer_fail(in, "there are %lld lengths for a batch of %lld",
                             (long long)lens->dims[0].value, (long long)x->dims[batch].value);
    return cm_infer_set(in, 0, x);
}

static enum cm_status reverse_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *shape = &x->shape;
    const int64_t *lens = call->in[1]->data;
    const int64_t inner = cm_shape_span(shape, 2, shape->rank);
    int batch, time;
    if (!read_axes(call->node, &batch, &time))
        return cm_call_fail(call, CM_BAD_MODEL, "batch_axis and time_axis must differ");
    const int64_t n = shape->dims[batch], steps = shape->dims[time];
    const int64_t batch_stride = batch == 0 ? steps : 1, time_stride = batch == 0 ? 1 : n;
    for (int64_t i = 0; i < n; i++) {
        if (lens[i] < 0 || lens[i] > steps)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "sequence %lld has length %lld, the axis %lld", (long long)i,
                                (long long)lens[i], (long long)steps);
        for (int64_t t = 0; t < steps; t++) {
            const int64_t from = t < lens[i] ? lens[i] - 1 - t : t;
            cm_move_span(x->type, x->data, (i * batch_stride + from * time_stride) * inner,
                         call->out[0]->data, (i * batch_stride + t * time_stride) * inner, inner);
        }
    }
    return cm_move_hold(call->out[0], x, call->err);
}

/* Turned around twice it is as before. */
static enum cm_status reverse_grad(struct cm_grad *g)
{
    const cm_value dx = cm_build(
        &g->build, &(struct cm_emission){.op = "ReverseSequence",
                                         CM_INPUTS(cm_grad_incoming(g, 0), cm_grad_input(g, 1)),
                                         .attributes = g->node->attributes,
                                         .n_attributes = g->node->n_attributes});
    return cm_grad_set(g, 0, dx);
}

CM_OP(ReverseSequence, .infer = reverse_infer, .run = reverse_run, .grad = reverse_grad);
