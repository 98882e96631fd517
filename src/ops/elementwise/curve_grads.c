/* GeluGrad and SwishGrad: dx = dy * slope(x). The gradients of Gelu and Swish emit one of these, so
 * that what a network has many of is one loop backward too. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/curve_grads.h"

#include "graph/node_formula.h"
#include "ops/elementwise/element_loops.h"
#include "tensor/vector_math.h"

#define SQRT_HALF      0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588
#define CUBIC          0.044715

/* The loop over a slope, of which there is a function per type: that of floats is built per
 * machine. */
#define SLOPE_PARAMETERS const struct cm_element_loop *loop, const struct cm_elements *e
#define SLOPE_EACH(ANY_ORDER, slope, DY, X)                                                        \
    {                                                                                              \
        ANY_ORDER                                                                                  \
        for (int64_t i = 0; i < e->count; i++)                                                     \
            dxs[i] = dys[DY] * slope(machine, xs[X], loop->p);                                     \
    }
#define SLOPE_LOOP(name, TAG, ctype, ANY_ORDER)                                                    \
    static CM_ALWAYS_INLINE void name##_##TAG##_on(enum cm_machine machine, SLOPE_PARAMETERS)      \
    {                                                                                              \
        const ctype *dys = e->in[0], *xs = e->in[1];                                               \
        ctype *dxs = e->out;                                                                       \
        if (e->step[0] == 1 && e->step[1] == 1)                                                    \
            SLOPE_EACH(ANY_ORDER, name##_of_##TAG, i, i)                                           \
        else                                                                                       \
            SLOPE_EACH(, name##_of_##TAG, i * e->step[0], i * e->step[1])                          \
    }
#define SLOPE_LOOPS(name)                                                                          \
    SLOPE_LOOP(name, FLOAT, float, CM_ANY_ORDER)                                                   \
    SLOPE_LOOP(name, DOUBLE, double, )                                                             \
    CM_BUILDS(name##_FLOAT, (SLOPE_PARAMETERS), (machine, loop, e))                                \
    CM_CALL_BUILDS(name##_FLOAT, (SLOPE_PARAMETERS), (loop, e))                                    \
    static void name##_DOUBLE(SLOPE_PARAMETERS)                                                    \
    {                                                                                              \
        name##_DOUBLE_on(CM_PLAIN, loop, e);                                                       \
    }

#define SLOPE_OF(name, TAG, ctype)                                                                 \
    static CM_ALWAYS_INLINE ctype name##_of_##TAG(enum cm_machine machine, ctype x, const double *p)

/* The distribution function of the normal distribution, plus x times its density. */
SLOPE_OF(gelu, FLOAT, float)
{
    (void)p;
    const float density = (float)(SQRT_2_OVER_PI / 2) * cm_exp_on(machine, -0.5f * x * x);
    return cm_normal_below_on(machine, x) + x * density;
}

SLOPE_OF(gelu, DOUBLE, double)
{
    (void)machine, (void)p;
    const double density = SQRT_2_OVER_PI / 2 * exp(-0.5 * x * x);
    const double v = x * SQRT_HALF; /* on the far left 1 + erf loses its digits */
    return 0.5 * (v > -1 ? 1 + erf(v) : erfc(-v)) + x * density;
}

/* With t = tanh(u(x)): (1 + t) / 2 + x * (1 - t * t) * u'(x) / 2 */
SLOPE_OF(gelu_tanh, FLOAT, float)
{
    (void)p;
    const float square = x * x;
    const float t = cm_tanh_on(machine, (float)SQRT_2_OVER_PI * x * (1 + (float)CUBIC * square));
    const float half_du = (float)(SQRT_2_OVER_PI / 2) * (1 + 3 * (float)CUBIC * square);
    return 0.5f * (1 + t) + x * ((1 - t) * (1 + t) * half_du);
}

SLOPE_OF(gelu_tanh, DOUBLE, double)
{
    (void)machine, (void)p;
    const double square = x * x;
    const double t = tanh(SQRT_2_OVER_PI * x * (1 + CUBIC * square));
    const double half_du = SQRT_2_OVER_PI / 2 * (1 + 3 * CUBIC * square);
    return 0.5 * (1 + t) + x * ((1 - t) * (1 + t) * half_du);
}

/* With z = alpha * x and s = sigmoid(z): s + z * s * (1 - s) */
SLOPE_OF(swish, FLOAT, float)
{
    const float z = (float)p[0] * x, s = cm_sigmoid_on(machine, z);
    return s + z * s * (1 - s);
}

SLOPE_OF(swish, DOUBLE, double)
{
    (void)machine;
    const double z = p[0] * x, s = 1 / (1 + exp(-z));
    return s + z * s * (1 - s);
}

SLOPE_LOOPS(gelu)
SLOPE_LOOPS(gelu_tanh)
SLOPE_LOOPS(swish)

typedef void loop_fn(const struct cm_element_loop *loop, const struct cm_elements *e);

static bool choose_loop(enum cm_dtype type, loop_fn *in_float, loop_fn *in_double,
                        struct cm_element_loop *loop)
{
    *loop = (struct cm_element_loop){.run = type == CM_DOUBLE ? in_double : in_float};
    return cm_dtype_info(type)->kind == CM_CLASS_FLOAT;
}

static bool by_tanh(const struct cm_node *node)
{
    return cm_str_is(cm_node_str(node, "approximate"), "tanh");
}

static bool gelu_grad_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                                  enum cm_dtype out, struct cm_element_loop *loop)
{
    (void)out;
    return by_tanh(node) ? choose_loop(in[0], gelu_tanh_FLOAT, gelu_tanh_DOUBLE, loop)
                         : choose_loop(in[0], gelu_FLOAT, gelu_DOUBLE, loop);
}

static bool swish_grad_elementwise(const struct cm_node *node, const enum cm_dtype *in,
                                   enum cm_dtype out, struct cm_element_loop *loop)
{
    (void)out;
    const bool found = choose_loop(in[0], swish_FLOAT, swish_DOUBLE, loop);
    loop->p[0] = (double)cm_node_float(node, "alpha");
    return found;
}

static enum cm_status slope_prepare(struct cm_call *call)
{
    if (!cm_shape_equal(&call->in[0]->shape, &call->in[1]->shape))
        return cm_call_fail(call, CM_BAD_MODEL, "its operands differ in shape");
    return cm_elements_prepare(call);
}

/* ---- Bodies ---- */

static enum cm_status gelu_grad_body(struct cm_body *b)
{
    return cm_body_formula(
        b, by_tanh(b->node)
               ? "square = X * X; rise = square * 0.044715 + 1;"
                 "t = Tanh(X * 0.79788456080286535588 * rise);"
                 "half_du = (square * (3 * 0.044715) + 1) * (0.79788456080286535588 / 2);"
                 "step = t + 1; bend = (1 - t) * step * half_du;"
                 "dX = dY * (step * 0.5 + X * bend)"
               : "square = X * X; step = Erf(X * 0.70710678118654752440) + 1;"
                 "bend = Exp(square * -0.5) * (0.79788456080286535588 / 2);"
                 "dX = dY * (step * 0.5 + X * bend)");
}

static enum cm_status swish_grad_body(struct cm_body *b)
{
    return cm_body_formula(b, "z = X * alpha; s = Sigmoid(z); dX = dY * (s + z * (s * (1 - s)))");
}

#define SLOPE(name)                                                                                \
    .infer = cm_infer_like_input, .prepare = slope_prepare, .run = cm_elements_run,                \
    .body = name##_grad_body, .memory.share = cm_share_elementwise,                                \
    .memory.layouts = CM_LAYOUT_SAME, .elementwise = name##_grad_elementwise

CM_OP_IN(cameo, "ai.cameo", GeluGrad, SLOPE(gelu));
CM_OP_IN(cameo, "ai.cameo", SwishGrad, SLOPE(swish));

/* ---- What Gelu and Swish emit ---- */

enum cm_status cm_gelu_grad(struct cm_grad *g)
{
    return cm_grad_formula(g, "dX = ai.cameo::GeluGrad<approximate>(dY, X)");
}

enum cm_status cm_swish_grad(struct cm_grad *g)
{
    return cm_grad_formula(g, "dX = ai.cameo::SwishGrad<alpha>(dY, X)");
}
