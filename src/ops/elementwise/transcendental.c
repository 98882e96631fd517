/* Functions of one number: exponential, logarithm, roots, trigonometry, the error function. */
// SPDX-License-Identifier: Apache-2.0
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

#define ROW(name, slope_)                                                                          \
    static const struct cm_unary name##_row = {.loops = name##_loops, .slope = "x, y: " slope_}
ROW(exp, "y");
ROW(log, "Reciprocal(x)");
ROW(sqrt, "0.5 / y");
ROW(reciprocal, "-(y * y)");
ROW(erf, "Exp(-(x * x)) * 1.1283791670955126"); /* 2 / sqrt(pi) */
ROW(sin, "Cos(x)");
ROW(cos, "-Sin(x)");
ROW(tan, "y * y + 1");
ROW(asin, "Reciprocal(Sqrt(1 - x * x))");
ROW(acos, "-Reciprocal(Sqrt(1 - x * x))");
ROW(atan, "Reciprocal(x * x + 1)");
ROW(sinh, "Cosh(x)");
ROW(cosh, "Sinh(x)");
ROW(asinh, "Reciprocal(Sqrt(x * x + 1))");
ROW(acosh, "Reciprocal(Sqrt(x * x + -1))");
ROW(atanh, "Reciprocal(1 - x * x)");

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
