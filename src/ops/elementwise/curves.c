/* Activations beyond those of activation.c: smooth and broken lines with parameters. p[0], p[1] are
 * attributes in the order of the rows below. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/curve_grads.h"
#include "ops/elementwise/slope.h"
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

static cm_value softplus_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Sigmoid", x);
}

/* 1 / (1 + |x|)^2 */
static cm_value softsign_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    const cm_value root = cm_emit(g, "Reciprocal", cm_slope_linear(g, cm_emit(g, "Abs", x), 1, 1));
    return cm_emit(g, "Mul", root, root);
}

/* alpha * exp(x) is y + alpha: no exp that could overflow where it is not chosen. */
static cm_value elu_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    const cm_value left = cm_slope_linear(g, y, 1, cm_slope_parameter(g, "alpha"));
    return cm_slope_choose(g, x, "Less", 0, left, cm_emit_scalar_like(g, x, 1));
}

static cm_value selu_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    const double gamma = cm_slope_parameter(g, "gamma");
    const cm_value left = cm_slope_linear(g, y, 1, gamma * cm_slope_parameter(g, "alpha"));
    return cm_slope_choose(g, x, "Greater", 0, cm_emit_scalar_like(g, x, gamma), left);
}

/* exp(x / alpha) is y / alpha + 1. */
static cm_value celu_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    const double alpha = cm_slope_parameter(g, "alpha");
    const cm_value left = cm_slope_linear(g, y, 1 / alpha, 1);
    return cm_slope_choose(g, x, alpha < 0 ? "Greater" : "Less", 0, left,
                           cm_emit_scalar_like(g, x, 1));
}

static cm_value leaky_relu_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_slope_choose(g, x, "Less", 0,
                           cm_emit_scalar_like(g, x, cm_slope_parameter(g, "alpha")),
                           cm_emit_scalar_like(g, x, 1));
}

static cm_value thresholded_relu_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_slope_choose(g, x, "Greater", cm_slope_parameter(g, "alpha"),
                           cm_emit_scalar_like(g, x, 1), cm_emit_scalar_like(g, x, 0));
}

/* alpha where the line is, between 0 and 1. */
static cm_value hard_sigmoid_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    const cm_value zero = cm_emit_scalar_like(g, x, 0);
    const cm_value alpha = cm_emit_scalar_like(g, x, cm_slope_parameter(g, "alpha"));
    return cm_slope_choose(g, y, "Greater", 0, cm_slope_choose(g, y, "Less", 1, alpha, zero), zero);
}

/* 0 up to -3, 1 from 3 on, x / 3 + 1/2 between. */
static cm_value hard_swish_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    const cm_value between = cm_slope_linear(g, x, 1.0 / 3, 0.5);
    const cm_value below = cm_slope_choose(g, x, "Less", 3, between, cm_emit_scalar_like(g, x, 1));
    return cm_slope_choose(g, x, "Greater", -3, below, cm_emit_scalar_like(g, x, 0));
}

/* With t = tanh(softplus(x)): t + x * (1 - t * t) * sigmoid(x) */
static cm_value mish_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    const cm_value t = cm_emit(g, "Tanh", cm_emit(g, "Softplus", x));
    const cm_value bend = cm_emit(g, "Mul", cm_slope_square_plus(g, t, -1, 1),
                                  cm_emit(g, "Mul", x, cm_emit(g, "Sigmoid", x)));
    return cm_emit(g, "Add", t, bend);
}

#define ROW(name, ...)                                                                             \
    static const struct cm_unary name##_row = {name##_loops, name##_slope, {__VA_ARGS__}}
ROW(softplus, NULL);
ROW(softsign, NULL);
ROW(elu, "alpha");
ROW(selu, "alpha", "gamma");
ROW(celu, "alpha");
ROW(leaky_relu, "alpha");
ROW(thresholded_relu, "alpha");
ROW(hard_sigmoid, "alpha", "beta");
ROW(hard_swish, NULL);
ROW(mish, NULL);
static const struct cm_unary swish_row = {swish_loops, NULL, {"alpha"}};

CM_OP(Softplus, CM_UNARY(softplus_row));
CM_OP(Softsign, CM_UNARY(softsign_row));
CM_OP(Elu, CM_UNARY(elu_row));
CM_OP(Selu, CM_UNARY(selu_row));
CM_OP(Celu, CM_UNARY(celu_row));
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
    const cm_value x = cm_body_input(b, 0), half = cm_emit_scalar_like(b, x, 0.5);
    const cm_value one = cm_emit_scalar_like(b, x, 1);
    cm_value bend;
    if (cm_str_is(cm_node_str(b->node, "approximate"), "tanh")) {
        const cm_value square = cm_emit(b, "Mul", x, x);
        const cm_value rise =
            cm_emit(b, "Add", one, cm_emit(b, "Mul", cm_emit_scalar_like(b, x, CUBIC), square));
        const cm_value scaled = cm_emit(b, "Mul", cm_emit_scalar_like(b, x, SQRT_2_OVER_PI), x);
        bend = cm_emit(b, "Tanh", cm_emit(b, "Mul", scaled, rise));
    } else {
        bend = cm_emit(b, "Erf", cm_emit(b, "Mul", cm_emit_scalar_like(b, x, SQRT_HALF), x));
    }
    const cm_value gate = cm_emit(b, "Mul", half, cm_emit(b, "Add", one, bend));
    return cm_body_return(b, 0, cm_emit(b, "Mul", x, gate));
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

static cm_value shrink_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    const double lambd = cm_slope_parameter(g, "lambd");
    const cm_value one = cm_emit_scalar_like(g, x, 1);
    const cm_value right =
        cm_slope_choose(g, x, "Greater", lambd, one, cm_emit_scalar_like(g, x, 0));
    return cm_slope_choose(g, x, "Less", -lambd, one, right);
}

ROW(shrink, "lambd", "bias");

static cm_value cast_to(struct cm_body *b, cm_value x, enum cm_dtype dtype)
{
    const struct cm_attribute_proto to =
        cm_attr_int(cm_builder_arena(&b->build), "to", (int64_t)dtype);
    return cm_emit_with(b, "Cast", CM_ATTRIBUTES(to), x);
}

/* Integers are compared and moved as real numbers, like in the kernel: a bound of 1/2 is none of
 * theirs. They come back by way of 64 bits, which wrap where the type is narrower. */
static enum cm_status shrink_body(struct cm_body *b)
{
    const struct cm_type *type = cm_builder_type(&b->build, cm_body_input(b, 0));
    const bool is_float = cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT;
    const cm_value x = is_float ? cm_body_input(b, 0) : cast_to(b, cm_body_input(b, 0), CM_DOUBLE);
    const double lambd = (double)cm_node_float(b->node, "lambd");
    const cm_value bias = cm_emit_scalar_like(b, x, (double)cm_node_float(b->node, "bias"));
    const cm_value is_right = cm_emit(b, "Greater", x, cm_emit_scalar_like(b, x, lambd));
    const cm_value is_left = cm_emit(b, "Less", x, cm_emit_scalar_like(b, x, -lambd));
    const cm_value right =
        cm_emit(b, "Where", is_right, cm_emit(b, "Sub", x, bias), cm_emit_scalar_like(b, x, 0));
    cm_value y = cm_emit(b, "Where", is_left, cm_emit(b, "Add", x, bias), right);
    if (!is_float)
        y = cast_to(b, cast_to(b, y, CM_INT64), type->dtype);
    return cm_body_return(b, 0, y);
}

CM_OP(Shrink, CM_UNARY(shrink_row), .body = shrink_body);
