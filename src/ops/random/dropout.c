/* Dropout, with the mask it saves for its gradient. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "graph/op.h"
#include "tensor/half.h"

static enum cm_status dropout_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    for (int i = 1; i < in->n_in; i++) {
        const struct cm_type *scalar = cm_infer_type(in, i);
        if (scalar && scalar->rank > 0)
            return cm_infer_fail(in, "input %d has rank %d, must be a scalar", i, scalar->rank);
    }
    CM_TRY(cm_infer_set(in, 0, x));
    return cm_infer_set_tensor(in, 1, CM_BOOL, x->rank, x->dims);
}

static enum cm_status copy_all(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    if (call->out[0]->data != x->data)
        memcpy(call->out[0]->data, x->data, cm_tensor_bytes(x));
    if (call->n_out > 1 && call->out[1])
        memset(call->out[1]->data, 1, cm_tensor_bytes(call->out[1]));
    return CM_OK;
}

enum { BLOCK = 256 };

/* An element stays with probability 1 - ratio and is scaled up, so that the expectation is the
 * input. */
static void drop(struct cm_call *call, double ratio)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    uint8_t *mask = call->n_out > 1 && call->out[1] ? call->out[1]->data : NULL;
    struct cm_random *random = cm_call_random(call);
    const int64_t count = cm_tensor_count(x);
    const double scale = 1.0 / (1.0 - ratio);

    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        bool keep[BLOCK];
        for (int64_t i = 0; i < n; i++) {
            keep[i] = cm_random_uniform(random) >= ratio;
            if (mask)
                mask[at + i] = keep[i];
        }
        if (x->type == CM_DOUBLE) {
            const double *from = x->data;
            double *to = y->data;
            for (int64_t i = 0; i < n; i++)
                to[at + i] = keep[i] ? from[at + i] * scale : 0;
            continue;
        }
        float block[BLOCK];
        float *to = x->type == CM_FLOAT ? (float *)y->data + at : block;
        const float *from = x->type == CM_FLOAT ? (const float *)x->data + at : block;
        if (x->type != CM_FLOAT)
            cm_narrow_load(x->type, x->data, at, n, block);
        for (int64_t i = 0; i < n; i++)
            to[i] = keep[i] ? from[i] * (float)scale : 0;
        if (x->type != CM_FLOAT)
            cm_narrow_store(x->type, y->data, at, n, block);
    }
}

static enum cm_status dropout_run(struct cm_call *call)
{
    const struct cm_tensor *ratio_in = call->n_in > 1 ? call->in[1] : NULL;
    const struct cm_tensor *mode = call->n_in > 2 ? call->in[2] : NULL;
    const double ratio = ratio_in ? cm_tensor_real(ratio_in, 0) : 0.5;
    const bool training = mode && *(const uint8_t *)mode->data;

    if (!training || ratio == 0)
        return copy_all(call);
    if (!(ratio > 0 && ratio < 1))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "the ratio is %g, must be at least 0 and below 1", ratio);
    drop(call, ratio);
    return CM_OK;
}

/* dx = dy * scale where the mask is set. Not training the mask is all true and the scale 1. */
static enum cm_status dropout_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    const cm_value ratio = cm_grad_input(g, 1), training = cm_grad_input(g, 2);
    if (!training)
        return cm_grad_set(g, 0, dy);
    const cm_value mask = cm_grad_extra_output(g, 1);
    const cm_value one = cm_emit_scalar_like(g, dy, 1.0);
    const cm_value dropped =
        ratio ? cm_emit(g, "CastLike", ratio, dy) : cm_emit_scalar_like(g, dy, 0.5);
    const cm_value scale = cm_emit(g, "Div", one, cm_emit(g, "Sub", one, dropped));
    const cm_value factor = cm_emit(g, "Where", training, scale, one);
    const cm_value zero = cm_emit_scalar_like(g, dy, 0.0);
    return cm_grad_set(g, 0, cm_emit(g, "Where", mask, cm_emit(g, "Mul", dy, factor), zero));
}

static enum cm_sharing dropout_share(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

/* The kept elements scaled up, the mask coming from outside. */
static enum cm_status dropout_from_mask(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), ratio = cm_body_input(b, 1);
    const cm_value training = cm_body_input(b, 2), mask = b->out[1];
    const cm_value one = cm_emit_scalar_like(b, x, 1.0), zero = cm_emit_scalar_like(b, x, 0.0);
    const cm_value dropped =
        ratio ? cm_emit(b, "CastLike", ratio, x) : cm_emit_scalar_like(b, x, 0.5);
    const cm_value scale = cm_emit(b, "Div", one, cm_emit(b, "Sub", one, dropped));
    cm_value y = cm_emit(b, "Where", mask, cm_emit(b, "Mul", x, scale), zero);
    if (!cm_value_get(b->node->module, training)->fact.constant)
        y = cm_emit(b, "Where", training, y, x);
    return cm_body_return(b, 0, y);
}

static const struct cm_training_form dropout_training = {
    .mode_input = 2, .draw_output = 1, .from_draw = dropout_from_mask};

CM_OP(Dropout, .infer = dropout_infer, .run = dropout_run, .grad = dropout_grad,
      .memory.share = dropout_share, .effects = CM_RANDOM, .training = &dropout_training);
