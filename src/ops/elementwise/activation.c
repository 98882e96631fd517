/* Activations that look at one element at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include <math.h>

/* Written as x < 0, not x > 0, so that NaN passes through as in the ONNX reference. */
#define RELU_ROW(TAG, ctype, name, extra) CM_UNARY_LOOP(name, TAG, ctype, x < 0 ? 0 : x)
CM_MATH_LOOP(relu, x < 0 ? 0 : x)
RELU_ROW(DOUBLE, double, relu, ())
CM_SIGNED_TYPES(RELU_ROW, relu, ())
static cm_unary_fn *const relu_loops[CM_DTYPE_COUNT] = {
    CM_FLOAT_SIGNED_TYPES(CM_LOOP_ENTRY, relu, ())};
/* Two forms, so that exp never overflows: for large |x| the direct one would give inf / inf. */
CM_MATH_LOOPS(sigmoid, cm_sigmoid_on(machine, x),
              x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)))
CM_MATH_LOOPS(tanh, cm_tanh_on(machine, x), tanh(x))

/* dx = dy where y > 0. Reads y rather than x: they agree, and x may be freed early. */
static enum cm_status relu_grad(struct cm_grad *g)
{
    const cm_value y = cm_grad_output(g, 0);
    const cm_value dy = cm_grad_incoming(g, 0);
    const cm_value zero = cm_emit_scalar_like(g, y, 0.0);
    const cm_value open = cm_emit(g, "Greater", y, zero);

    return cm_grad_set(g, 0, cm_emit(g, "Where", open, dy, zero));
}

/* y * (1 - y) */
static cm_value sigmoid_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)x;
    return cm_emit(g, "Mul", y, cm_emit(g, "Sub", cm_emit_scalar_like(g, y, 1.0), y));
}

/* 1 - y * y */
static cm_value tanh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)x;
    const cm_value one = cm_emit_scalar_like(g, y, 1.0);
    return cm_emit(g, "Sub", one, cm_emit(g, "Mul", y, y));
}

static const struct cm_unary relu = {.loops = relu_loops};
static const struct cm_unary sigmoid = {.loops = sigmoid_loops, .slope = sigmoid_slope};
static const struct cm_unary tanh_ = {.loops = tanh_loops, .slope = tanh_slope};

CM_OP(Relu, .infer = cm_infer_like_input, .grad = relu_grad, CM_UNARY_ROW(relu));
CM_OP(Sigmoid, CM_UNARY(sigmoid), .scores.is_logistic = true);
CM_OP(Tanh, CM_UNARY(tanh_));
