/* Activations that look at one element at a time. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
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

/* Reads y rather than x: they agree, and x may be freed early. */
CM_GRADIENT(relu_grad, "zero = like(Y, 0); dX = Where(Greater(Y, zero), dY, zero)")

static const struct cm_unary relu = {.loops = relu_loops};
static const struct cm_unary sigmoid = {.loops = sigmoid_loops, .slope = "x, y: y * (1 - y)"};
static const struct cm_unary tanh_ = {.loops = tanh_loops, .slope = "x, y: 1 - y * y"};

CM_OP(Relu, .infer = cm_infer_like_input, .grad = relu_grad, CM_UNARY_ROW(relu));
CM_OP(Sigmoid, CM_UNARY(sigmoid), .scores.is_logistic = true);
CM_OP(Tanh, CM_UNARY(tanh_));
