/* Pow: the exponent may be of another type than the base, whose type the result has. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/elementwise/element_loops.h"
#include "tensor/element_types.h"
#include "tensor/vector_math.h"

#include <math.h>

/* Exponents come as one of three kinds, by their type and that of the base. */
enum kind { REAL_FLOAT, REAL_DOUBLE, WHOLE };

/* x to the power e modulo 2^64, whose low bits are those of every narrower type. A negative power
 * of an integer is 0 but for 1 and -1; of 0 it has no value, and is 0 here. */
static int64_t whole_power(int64_t x, int64_t e)
{
    if (e < 0)
        return x == 1 ? 1 : x == -1 ? (e % 2 ? -1 : 1) : 0;
    uint64_t power = 1, square = (uint64_t)x;
    for (; e > 0; e >>= 1) {
        if (e & 1)
            power *= square;
        square *= square;
    }
    return (int64_t)power;
}

/* What 64 bits hold: the nearest for what they do not, 0 for NaN. */
static int64_t to_integer(double v)
{
    if (isnan(v))
        return 0;
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* One run of n powers; es is a block of exponents, or one of them when step is 0. */
typedef void power_fn(int64_t n, const void *x, int64_t step_x, const void *e, int64_t step_e,
                      void *y);

#define POWER_PARAMETERS                                                                           \
    int64_t n, const void *from, int64_t step_x, const void *by, int64_t step_e, void *to
#define POWER_LOOP(name, ctype, etype, expression)                                                 \
    static void name(POWER_PARAMETERS)                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const ctype x = ((const ctype *)from)[i * step_x];                                     \
            const etype e = ((const etype *)by)[i * step_e];                                       \
            ((ctype *)to)[i] = (ctype)(expression);                                                \
        }                                                                                          \
    }
POWER_LOOP(power_float_double, float, double, pow((double)x, e))
POWER_LOOP(power_float_whole, float, int64_t, pow((double)x, (double)e))
POWER_LOOP(power_double_double, double, double, e == 2 ? x * x : pow(x, e))
POWER_LOOP(power_double_whole, double, int64_t, pow(x, (double)e))
POWER_LOOP(power_int32_double, int32_t, double, to_integer(pow((double)x, e)))
POWER_LOOP(power_int32_whole, int32_t, int64_t, whole_power(x, e))
POWER_LOOP(power_int64_double, int64_t, double, to_integer(pow((double)x, e)))
POWER_LOOP(power_int64_whole, int64_t, int64_t, whole_power(x, e))
/* The exponent is 2, or 3, for all. */
POWER_LOOP(square_float, float, float, ((void)e, x *x))
POWER_LOOP(cube_float, float, float, ((void)e, (double)x *(double)x *(double)x))
POWER_LOOP(square_double, double, double, ((void)e, x *x))

enum { BLOCK = 256 };

/* Squares and cubes, by far the most frequent powers, are products: whatever repeats, one element
 * or none. n is a block at most. */
static void power_float_float(POWER_PARAMETERS)
{
    const float *xs = from, *es = by;
    float *ys = to, powers[BLOCK];
    cm_pow_floats(n, xs, step_x, es, step_e, powers);
    for (int64_t i = 0; i < n; i++) {
        const float x = xs[i * step_x], e = es[i * step_e];
        const float cube = (float)((double)x * (double)x * (double)x);
        ys[i] = e == 2 ? x * x : e == 3 ? cube : powers[i];
    }
}

static power_fn *const powers[CM_DTYPE_COUNT][3] = {
    [CM_FLOAT] = {power_float_float, power_float_double, power_float_whole},
    [CM_DOUBLE] = {NULL, power_double_double, power_double_whole},
    [CM_INT32] = {NULL, power_int32_double, power_int32_whole},
    [CM_INT64] = {NULL, power_int64_double, power_int64_whole},
};

static enum kind kind_of(enum cm_dtype base, enum cm_dtype exponent)
{
    if (cm_dtype_info(exponent)->kind != CM_CLASS_FLOAT)
        return WHOLE;
    return base == CM_FLOAT && exponent != CM_DOUBLE ? REAL_FLOAT : REAL_DOUBLE;
}

/* Exponents as whole numbers. Those past 2^63 become ones below it that give the same integer
 * powers: those of odd numbers repeat every 2^62, those of even ones are 0 by then. */
typedef void wholes_fn(int64_t n, const void *from, int64_t *to);

#define WHOLES(TAG, ctype, name, extra)                                                            \
    static void name##_##TAG(int64_t n, const void *from, int64_t *to)                             \
    {                                                                                              \
        const ctype *e = from;                                                                     \
        const uint64_t past = UINT64_C(1) << 63, low = (UINT64_C(1) << 62) - 1;                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = e[i] > 0 && (uint64_t)e[i] >= past                                             \
                        ? (int64_t)(((uint64_t)e[i] & low) | (low + 1))                            \
                        : (int64_t)e[i];                                                           \
    }
CM_INTEGER_TYPES(WHOLES, wholes, ())
static wholes_fn *const wholes[CM_DTYPE_COUNT] = {CM_INTEGER_TYPES(CM_LOOP_ENTRY, wholes, ())};

union block {
    double doubles[BLOCK];
    int64_t wholes[BLOCK];
};

/* n exponents in the form that kind asks for. */
static const void *exponents(const void *from, enum cm_dtype type, enum kind kind, int64_t n,
                             union block *block)
{
    if (kind == WHOLE) {
        wholes[type](n, from, block->wholes);
        return block->wholes;
    }
    if (kind == REAL_FLOAT || type == CM_DOUBLE)
        return from;
    const float *floats = from;
    for (int64_t i = 0; i < n; i++)
        block->doubles[i] = (double)floats[i];
    return block->doubles;
}

static power_fn *loop_of(enum cm_dtype base, enum kind kind, int64_t step_e, const void *e)
{
    const bool float_repeats = !step_e && base == CM_FLOAT && kind == REAL_FLOAT;
    if (float_repeats && *(const float *)e == 2)
        return square_float;
    if (float_repeats && *(const float *)e == 3)
        return cube_float;
    if (!step_e && base == CM_DOUBLE && kind == REAL_DOUBLE && *(const double *)e == 2)
        return square_double;
    return powers[base][kind];
}

static void power(const struct cm_element_loop *loop, const struct cm_elements *e)
{
    const enum cm_dtype base = (enum cm_dtype)loop->p[0], type = (enum cm_dtype)loop->p[1];
    const enum kind kind = kind_of(base, type);
    const size_t width = cm_dtype_size(base), exponent_width = cm_dtype_size(type);
    const char *x = e->in[0], *by = e->in[1];
    for (int64_t at = 0; at < e->count; at += BLOCK) {
        const int64_t n = e->count - at < BLOCK ? e->count - at : BLOCK;
        union block block;
        const void *es = exponents(by + (size_t)(at * e->step[1]) * exponent_width, type, kind,
                                   e->step[1] ? n : 1, &block);
        loop_of(base, kind, e->step[1], es)(n, x + (size_t)(at * e->step[0]) * width, e->step[0],
                                            es, e->step[1], (char *)e->out + (size_t)at * width);
    }
}

static bool pow_elementwise(const struct cm_node *node, const enum cm_dtype *in, enum cm_dtype out,
                            struct cm_element_loop *loop)
{
    const enum cm_dtype base = cm_element_type(in[0]), exponent = cm_element_type(in[1]);
    (void)node, (void)out;
    *loop = (struct cm_element_loop){.run = power, .p = {(double)base, (double)exponent}};
    return powers[base][WHOLE] &&
           (wholes[exponent] || exponent == CM_FLOAT || exponent == CM_DOUBLE);
}

/* The zeroth power of 0 has slope 0: there the lower power is taken to be the zeroth too, so that
 * it, and what is differentiated again, stays finite. The power of 0 stays what it is. */
static enum cm_status pow_grad(struct cm_grad *g)
{
    if (cm_grad_wants(g, 0))
        CM_TRY(cm_grad_formula(g, "e = cast(Y, X); zero = like(X, 0); one = like(X, 1);"
                                  "corner = And(Equal(e, zero), Equal(X, zero));"
                                  "lower = Where(corner, zero, e - one);"
                                  "dX = dZ * (e * Pow(X, lower))"));
    if (!cm_grad_wants(g, 1))
        return CM_OK;
    return cm_grad_formula(g,
                           "safe = Where(Equal(X, 0), 1, X); dY = cast(dZ * (Z * Log(safe)), Y)");
}

CM_OP(Pow, .infer = cm_infer_broadcast, .prepare = cm_elements_prepare, .run = cm_elements_run,
      .grad = pow_grad, .memory.share = cm_share_first, .elementwise = pow_elementwise);
