/* Functions of one number: exponential, logarithm, roots, trigonometry, the error function. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/slope.h"
#include "ops/elementwise/unary.h"

#include <tgmath.h> /* floats use the float functions */

CM_MATH_LOOPS(exp, cm_exp_on(machine, x), exp(x))
CM_MATH_LOOPS(log, cm_log_on(machine, x), log(x))
CM_MATH_LOOPS(sqrt, sqrtf(x), sqrt(x))
CM_MATH_LOOPS(reciprocal, 1 / x, 1 / x)
CM_MATH_LOOPS(erf, cm_erf_on(machine, x), erf(x))

/* By functions of whole arrays. */
#define ARRAY_LOOPS(name)                                                                          \
    static void name##_FLOAT(int64_t count, const void *from, void *to, const double *p)           \
    {                                                                                              \
        (void)p;                                                                                   \
        cm_##name##_floats(count, from, to);                                                       \
    }                                                                                              \
    CM_UNARY_LOOP(name, DOUBLE, double, name(x))                                                   \
    static cm_unary_fn *const name##_loops[CM_DTYPE_COUNT] = {                                     \
        CM_FLOAT_TYPES(CM_LOOP_ENTRY, name, ())};
ARRAY_LOOPS(sin)
ARRAY_LOOPS(cos)
ARRAY_LOOPS(atan)
CM_UNARY_LOOPS(tan, CM_FLOAT_TYPES, tan(x))
CM_UNARY_LOOPS(asin, CM_FLOAT_TYPES, asin(x))
CM_UNARY_LOOPS(acos, CM_FLOAT_TYPES, acos(x))
CM_UNARY_LOOPS(sinh, CM_FLOAT_TYPES, sinh(x))
CM_UNARY_LOOPS(cosh, CM_FLOAT_TYPES, cosh(x))
CM_UNARY_LOOPS(asinh, CM_FLOAT_TYPES, asinh(x))
CM_UNARY_LOOPS(acosh, CM_FLOAT_TYPES, acosh(x))
CM_UNARY_LOOPS(atanh, CM_FLOAT_TYPES, atanh(x))

static cm_value exp_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)g, (void)x;
    return y;
}

/* 1 / x */
static cm_value log_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", x);
}

/* 1 / (2 y) */
static cm_value sqrt_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)x;
    return cm_emit(g, "Div", cm_emit_scalar_like(g, y, 0.5), y);
}

/* -y * y */
static cm_value reciprocal_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)x;
    return cm_emit(g, "Neg", cm_emit(g, "Mul", y, y));
}

/* 2 / sqrt(pi) * exp(-x * x) */
static cm_value erf_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    const cm_value bell = cm_emit(g, "Exp", cm_emit(g, "Neg", cm_emit(g, "Mul", x, x)));
    return cm_emit(g, "Mul", bell, cm_emit_scalar_like(g, x, 1.1283791670955126));
}

static cm_value sin_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Cos", x);
}

static cm_value cos_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Neg", cm_emit(g, "Sin", x));
}

/* 1 + y * y */
static cm_value tan_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)x;
    return cm_slope_square_plus(g, y, 1, 1);
}

/* 1 / sqrt(1 - x * x) */
static cm_value asin_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", cm_emit(g, "Sqrt", cm_slope_square_plus(g, x, -1, 1)));
}

static cm_value acos_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    return cm_emit(g, "Neg", asin_slope(g, x, y));
}

/* 1 / (1 + x * x) */
static cm_value atan_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", cm_slope_square_plus(g, x, 1, 1));
}

static cm_value sinh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Cosh", x);
}

static cm_value cosh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Sinh", x);
}

/* 1 / sqrt(x * x + 1) */
static cm_value asinh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", cm_emit(g, "Sqrt", cm_slope_square_plus(g, x, 1, 1)));
}

/* 1 / sqrt(x * x - 1) */
static cm_value acosh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", cm_emit(g, "Sqrt", cm_slope_square_plus(g, x, 1, -1)));
}

/* 1 / (1 - x * x) */
static cm_value atanh_slope(struct cm_grad *g, cm_value x, cm_value y)
{
    (void)y;
    return cm_emit(g, "Reciprocal", cm_slope_square_plus(g, x, -1, 1));
}

#define ROW(name)                                                                                  \
    static const struct cm_unary name##_row = {.loops = name##_loops, .slope = name##_slope}
ROW(exp);
ROW(log);
ROW(sqrt);
ROW(reciprocal);
ROW(erf);
ROW(sin);
ROW(cos);
ROW(tan);
ROW(asin);
ROW(acos);
ROW(atan);
ROW(sinh);
ROW(cosh);
ROW(asinh);
ROW(acosh);
ROW(atanh);

CM_OP(Exp, CM_UNARY(exp_row));
CM_OP(Log, CM_UNARY(log_row));
CM_OP(Sqrt, CM_UNARY(sqrt_row));
CM_OP(Reciprocal, CM_UNARY(reciprocal_row));
CM_OP(Erf, CM_UNARY(erf_row));
CM_OP(Sin, CM_UNARY(sin_row));
CM_OP(Cos, CM_UNARY(cos_row));
CM_OP(Tan, CM_UNARY(tan_row));
CM_OP(Asin, CM_UNARY(asin_row));
CM_OP(Acos, CM_UNARY(acos_row));
CM_OP(Atan, CM_UNARY(atan_row));
CM_OP(Sinh, CM_UNARY(sinh_row));
CM_OP(Cosh, CM_UNARY(cosh_row));
CM_OP(Asinh, CM_UNARY(asinh_row));
CM_OP(Acosh, CM_UNARY(acosh_row));
CM_OP(Atanh, CM_UNARY(atanh_row));
