/* Activations beyond those of activation.c: smooth and broken lines with parameters. p[0], p[1] are
 * attributes in the order of the rows below. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/elementwise/curve_grads.h"
#include "ops/elementwise/unary.h"

#include <tgmath.h> /* floats use the float functions */

/* Nothing overflows on the way: exp is taken of what is not positive. */
CM_MATH_LOOPS(softplus, cm_softplus_on(machine, x), log1p(exp(-fabs(x))) + (x > 0 ? x : 0))
CM_UNARY_LOOPS(softsign, CM_FLOAT_TYPES, x / (1 + fabs(x)))
CM_MATH_LOOPS(elu, cm_either(x < 0, (T)p[0] * cm_expm1_on(machine, x), x),
              x < 0 ? p[0] * expm1(x) : x)
CM_MATH_LOOPS(selu, (T)p[1] * cm_either(x > 0, x, (T)p[0] * cm_expm1_on(machine, x)),
              x > 0 ? p[1] * x : p[1] * (p[0] * expm1(x)))
CM_MATH_LOOPS(celu, cm_either(x / (T)p[0] < 0, (T)p[0] * cm_expm1_on(machine, x / (T)p[0]), x),
              x / p[0] < 0 ? p[0] * expm1(x / p[0]) : x)
CM_MATH_LOOPS(leaky_relu, cm_either(x < 0, (T)p[0] * x, x), x < 0 ? (T)p[0] * x : x)
/* NaN is not above the threshold: 0, as ONNX's evaluator and its function body have it. */
CM_UNARY_LOOPS(thresholded_relu, CM_FLOAT_TYPES, x > (T)p[0] ? x : 0)

#define HARD_SIGMOID(z) ((z) <= 0 ? 0 : (z) >= 1 ? 1 : (z))
CM_MATH_LOOPS(hard_sigmoid, HARD_SIGMOID((T)p[0] * x + (T)p[1]),
              HARD_SIGMOID((T)p[0] * x + (T)p[1]))
CM_MATH_LOOPS(hard_swish, x *HARD_SIGMOID(x / 6 + (T)0.5), x *HARD_SIGMOID(x / 6 + (T)0.5))
CM_MATH_LOOPS(mish, x *cm_tanh_on(machine, cm_softplus_on(machine, x)),
              x *tanh(log1p(exp(-fabs(x))) + (x > 0 ? x : 0)))
CM_MATH_LOOPS(swish, cm_swish_on(machine, x, (T)p[0]), x / (1 + exp(-p[0] * x)))

/* exp(x / alpha) is y / alpha + 1. */
static enum cm_status celu_grad(struct cm_grad *g)
{
    const double alpha = (double)cm_node_float(g->node, "alpha");
    const cm_value left = cm_emit_formula(g, alpha == 1 ? "y: y + 1" : "y: y * (1 / alpha) + 1",
                                          cm_grad_output(g, 0));
    const cm_value slope =
        cm_emit_formula(g,
                        alpha < 0 ? "x, left: one = like(x, 1); Where(Greater(x, 0), left, one)"
                                  : "x, left: one = like(x, 1); Where(Less(x, 0), left, one)",
                        cm_grad_input(g, 0), left);
    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_grad_incoming(g, 0), slope));
}

#define ROW(name, slope, ...)                                                                      \
    static const struct cm_unary name##_row = {name##_loops, "x, y: " slope, {__VA_ARGS__}}
ROW(softplus, "Sigmoid(x)", NULL);
ROW(softsign, "root = Reciprocal(Abs(x) + 1); root * root", NULL); /* 1 / (1 + |x|)^2 */
/* alpha * exp(x) is y + alpha: no exp that could overflow where it is not chosen. */
ROW(elu, "left = y + alpha; one = like(x, 1); Where(Less(x, 0), left, one)", "alpha");
ROW(selu, "left = y + gamma * alpha; scale = like(x, gamma); Where(Greater(x, 0), scale, left)",
    "alpha", "gamma");
ROW(leaky_relu, "one = like(x, 1); slope = like(x, alpha); Where(Less(x, 0), slope, one)", "alpha");
ROW(thresholded_relu, "zero = like(x, 0); one = like(x, 1); Where(Greater(x, alpha), one, zero)",
    "alpha");
/* alpha where the line is, between 0 and 1. */
ROW(hard_sigmoid,
    "zero = like(x, 0); slope = like(x, alpha); line = Where(Less(y, 1), slope, zero);"
    "Where(Greater(y, 0), line, zero)",
    "alpha", "beta");
/* 0 up to -3, 1 from 3 on, x / 3 + 1/2 between. */
ROW(hard_swish,
    "between = x * (1 / 3) + 0.5; one = like(x, 1); below = Where(Less(x, 3), between, one);"
    "zero = like(x, 0); Where(Greater(x, -3), below, zero)",
    NULL);
ROW(mish, "t = Tanh(Softplus(x)); t + (1 - t * t) * (x * Sigmoid(x))", NULL);
static const struct cm_unary celu_row = {celu_loops, NULL, {"alpha"}};
static const struct cm_unary swish_row = {swish_loops, NULL, {"alpha"}};

CM_OP(Softplus, CM_UNARY(softplus_row));
CM_OP(Softsign, CM_UNARY(softsign_row));
CM_OP(Elu, CM_UNARY(elu_row));
CM_OP(Selu, CM_UNARY(selu_row));
CM_OP(Celu, .infer = cm_infer_like_input, .grad = celu_grad, CM_UNARY_ROW(celu_row));
CM_OP(LeakyRelu, CM_UNARY(leaky_relu_row));
CM_OP(ThresholdedRelu, CM_UNARY(thresholded_relu_row));
CM_OP(HardSigmoid, CM_UNARY(hard_sigmoid_row));
CM_OP(HardSwish, CM_UNARY(hard_swish_row));
CM_OP(Mish, CM_UNARY(mish_row));
CM_OP(Swish, .infer = cm_infer_like_input, .grad = cm_swish_grad, CM_UNARY_ROW(swish_row));

/* ---- Gelu: exact by the error function, or by tanh of a cubic ---- */

#define SQRT_HALF      0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588
#define CUBIC          0.044715

/* 1 + erf(v) is erfc(-v), which keeps its digits on the far left and takes longer: for there only.
 */
#define GATE(v) ((v) > -1 ? 1 + erf(v) : erfc(-(v)))
CM_MATH_LOOPS(gelu, x *cm_normal_below_on(machine, x), 0.5 * x * GATE(x * SQRT_HALF))
#define TANH_INNER(T, x) ((T)SQRT_2_OVER_PI * ((x) + (T)CUBIC * (x) * (x) * (x)))
CM_MATH_LOOPS(gelu_tanh, 0.5f * x * (1 + cm_tanh_on(machine, TANH_INNER(float, x))),
              0.5 * x * (1 + tanh(TANH_INNER(double, x))))

static bool gelu_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                             struct cm_element_loop *loop)
{
    const struct cm_str by = cm_node_str(node, "approximate");
    (void)out;
    if (cm_str_is(by, "none"))
        return cm_unary_loop(gelu_loops, in[0], loop);
    return cm_str_is(by, "tanh") && cm_unary_loop(gelu_tanh_loops, in[0], loop);
}

static enum cm_status gelu_prepare(struct cm_call *call)
{
    const struct cm_str by = cm_node_str(call->node, "approximate");
    if (!cm_str_is(by, "none") && !cm_str_is(by, "tanh"))
        return cm_call_fail(call, CM_BAD_MODEL,
                            "attribute 'approximate' is '%.*s', expected 'none' or 'tanh'",
                            CM_STR_FMT(by));
    return cm_elements_prepare(call);
}

/* x / 2 * (1 + erf(x / sqrt 2)), or tanh of the cubic for erf. */
static enum cm_status gelu_body(struct cm_body *b)
{
    const bool by_tanh = cm_str_is(cm_node_str(b->node, "approximate"), "tanh");
    return cm_body_formula(
        b, by_tanh
               ? "one = like(X, 1); rise = one + 0.044715 * (X * X);"
                 "bend = Tanh((0.79788456080286535588 * X) * rise); Y = X * (0.5 * (one + bend))"
               : "Y = X * (0.5 * (1 + Erf(0.70710678118654752440 * X)))");
}

CM_OP(Gelu, .infer = cm_infer_like_input, .prepare = gelu_prepare, .run = cm_elements_run,
      .grad = cm_gelu_grad, .body = gelu_body, .memory.share = cm_share_elementwise,
      .memory.layouts = CM_LAYOUT_SAME, .elementwise = gelu_elementwise);

/* ---- Shrink: integers too, whose bounds and offset are still real numbers ---- */

/* Beyond what 64 bits hold, the nearest that they do. */
static int64_t to_integer(double v)
{
    if (isnan(v))
        return 0;
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

#define SHRINK_FLOAT(TAG, ctype, name, extra)                                                      \
    CM_UNARY_LOOP(name, TAG, ctype, x<-(T)p[0] ? x + (T)p[1] : x>(T) p[0] ? x - (T)p[1] : 0)
#define SHRINK_INTEGER(TAG, ctype, name, extra)                                                    \
    CM_UNARY_LOOP(name, TAG, ctype,                                                                \
                  (double)x<-p[0] ? to_integer((double)x + p[1]) : (double)x> p[0]                 \
                      ? to_integer((double)x - p[1])                                               \
                      : 0)
CM_FLOAT_TYPES(SHRINK_FLOAT, shrink, ())
CM_INTEGER_TYPES(SHRINK_INTEGER, shrink, ())
static cm_unary_fn *const shrink_loops[CM_DTYPE_COUNT] = {
    CM_NUMBER_TYPES(CM_LOOP_ENTRY, shrink, ())};

ROW(shrink,
    "one = like(x, 1); zero = like(x, 0); right = Where(Greater(x, lambd), one, zero);"
    "Where(Less(x, -lambd), one, right)",
    "lambd", "bias");

/* Integers are compared and moved as real numbers, like in the kernel: a bound of 1/2 is none of
 * theirs. They come back by way of 64 bits, which wrap where the type is narrower. */
static enum cm_status shrink_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool is_float = cm_dtype_info(dtype)->kind == CM_CLASS_FLOAT;
    return cm_body_formula(b,
                           "x = %s(input); move = like(x, bias); is_right = Greater(x, lambd);"
                           "is_left = Less(x, -lambd); right = Where(is_right, x - move, 0);"
                           "y = Where(is_left, x + move, right); back(t) = Cast<to=%d>(int64(t));"
                           "output = %s",
                           cm_dtype_name(is_float ? dtype : CM_DOUBLE), (int)dtype,
                           is_float ? "y" : "back(y)");
}

CM_OP(Shrink, CM_UNARY(shrink_row), .body = shrink_body);
