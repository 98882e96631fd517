/* Activations that look at one element at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include <math.h>

/* Written as x < 0, not x > 0, so that NaN passes through as in the ONNX reference. */
CM_UNARY_LOOPS(relu, CM_FLOAT_SIGNED_TYPES, x < 0 ? 0 : x)

static enum cm_status relu_run(struct cm_call *call)
{
    return cm_run_unary(call, relu_loops, NULL);
}

/* dx = dy where y > 0. Reads y rather than x: they agree, and x may be freed early. */
static enum cm_status relu_grad(struct cm_grad *g)
{
    const cm_value y = cm_grad_output(g, 0);
    const cm_value dy = cm_grad_incoming(g, 0);
    const cm_value zero = cm_emit_scalar_like(g, y, 0.0);
    const cm_value open = cm_emit(g, "Greater", y, zero);

    return cm_grad_set(g, 0, cm_emit(g, "Where", open, dy, zero));
}

CM_OP(Relu, .infer = cm_infer_like_input, .run = relu_run, .grad = relu_grad,
      .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME);

/* Two forms, so that exp never overflows: for large |x| the direct one would give inf / inf. */
CM_UNARY_LOOPS(sigmoid, CM_FLOAT_TYPES,
               x >= 0 ? 1 / (1 + (T)exp((double)-x)) : (T)exp((double)x) / (1 + (T)exp((double)x)))

static enum cm_status sigmoid_run(struct cm_call *call)
{
    return cm_run_unary(call, sigmoid_loops, NULL);
}

/* dx = dy * y * (1 - y) */
static enum cm_status sigmoid_grad(struct cm_grad *g)
{
    const cm_value y = cm_grad_output(g, 0);
    const cm_value slope =
        cm_emit(g, "Mul", y, cm_emit(g, "Sub", cm_emit_scalar_like(g, y, 1.0), y));

    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_grad_incoming(g, 0), slope));
}

CM_OP(Sigmoid, .infer = cm_infer_like_input, .run = sigmoid_run, .grad = sigmoid_grad,
      .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME);

CM_UNARY_LOOPS(tanh, CM_FLOAT_TYPES, tanh((double)x))

static enum cm_status tanh_run(struct cm_call *call)
{
    return cm_run_unary(call, tanh_loops, NULL);
}

/* dx = dy * (1 - y * y) */
static enum cm_status tanh_grad(struct cm_grad *g)
{
    const cm_value y = cm_grad_output(g, 0);
    const cm_value one = cm_emit_scalar_like(g, y, 1.0);
    const cm_value slope = cm_emit(g, "Sub", one, cm_emit(g, "Mul", y, y));

    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_grad_incoming(g, 0), slope));
}

CM_OP(Tanh, .infer = cm_infer_like_input, .run = tanh_run, .grad = tanh_grad,
      .share = cm_share_elementwise, .layouts = CM_LAYOUT_SAME);
