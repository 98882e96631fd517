/* Pow: the exponent may be of another type than the base, whose type the result has. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"
#include "ops/elementwise/walk.h"
#include "tensor/half.h"

#include <math.h>

/* Exponents come as one of three kinds, by their type and that of the base. */
enum kind { REAL_FLOAT, REAL_DOUBLE, WHOLE };

enum { BLOCK = 256 };

struct block {
    float floats[BLOCK];
    double doubles[BLOCK];
    int64_t wholes[BLOCK];
};

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

#define POWER_LOOP(name, ctype, etype, expression)                                                 \
    static void name(int64_t n, const void *from, int64_t step_x, const void *by, int64_t step_e,  \
                     void *to)                                                                     \
    {                                                                                              \
        typedef ctype T;                                                                           \
        const T *xs = from;                                                                        \
        const etype *es = by;                                                                      \
        T *ys = to;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = xs[i * step_x];                                                            \
            const etype e = es[i * step_e];                                                        \
            ys[i] = (T)(expression);                                                               \
        }                                                                                          \
    }
POWER_LOOP(power_float_float, float, float, powf(x, e))
POWER_LOOP(power_float_double, float, double, pow((double)x, e))
POWER_LOOP(power_float_whole, float, int64_t, pow((double)x, (double)e))
POWER_LOOP(power_double_double, double, double, pow(x, e))
POWER_LOOP(power_double_whole, double, int64_t, pow(x, (double)e))
POWER_LOOP(power_int32_double, int32_t, double, to_integer(pow((double)x, e)))
POWER_LOOP(power_int32_whole, int32_t, int64_t, whole_power(x, e))
POWER_LOOP(power_int64_double, int64_t, double, to_integer(pow((double)x, e)))
POWER_LOOP(power_int64_whole, int64_t, int64_t, whole_power(x, e))
/* By far the most frequent exponent. */
POWER_LOOP(square_float, float, float, ((void)e, x *x))
POWER_LOOP(square_double, double, double, ((void)e, x *x))

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

/* Exponents past 2^63 become ones below it that give the same integer powers: those of odd numbers
 * repeat every 2^62, those of even ones are 0 by then. */
static int64_t whole_exponent(const struct cm_tensor *e, int64_t i)
{
    const int64_t value = cm_tensor_int(e, i);
    if (e->type == CM_UINT64 && value < 0)
        return (value & ((INT64_C(1) << 62) - 1)) | INT64_C(1) << 62;
    return value;
}

/* n exponents from place at on, in the form that kind asks for. */
static const void *load_exponents(const struct cm_tensor *e, enum kind kind, int64_t at, int64_t n,
                                  struct block *block)
{
    if (kind == WHOLE) {
        for (int64_t i = 0; i < n; i++)
            block->wholes[i] = whole_exponent(e, at + i);
        return block->wholes;
    }
    if (e->type == CM_FLOAT && kind == REAL_FLOAT)
        return (const float *)e->data + at;
    if (e->type == CM_DOUBLE)
        return (const double *)e->data + at;
    if (e->type == CM_FLOAT)
        memcpy(block->floats, (const float *)e->data + at, (size_t)n * sizeof(float));
    else
        cm_narrow_load(e->type, e->data, at, n, block->floats);
    if (kind == REAL_FLOAT)
        return block->floats;
    for (int64_t i = 0; i < n; i++)
        block->doubles[i] = (double)block->floats[i];
    return block->doubles;
}

static power_fn *shortcut(enum cm_dtype base, enum kind kind, int64_t step_e, const void *e)
{
    if (step_e)
        return NULL;
    if (base == CM_FLOAT && kind == REAL_FLOAT && *(const float *)e == 2)
        return square_float;
    if (base == CM_DOUBLE && kind == REAL_DOUBLE && *(const double *)e == 2)
        return square_double;
    return NULL;
}

/* n results at place to, from bases at at[0] and exponents at at[1]. */
static void power_block(const struct cm_call *call, const struct cm_walk *walk, const int64_t *at,
                        int64_t done, int64_t n, int64_t to)
{
    const struct cm_tensor *x = call->in[0], *e = call->in[1];
    const bool narrow = cm_dtype_is_narrow(x->type);
    const enum cm_dtype base = narrow ? CM_FLOAT : x->type;
    const enum kind kind = kind_of(base, e->type);
    const int64_t step_x = walk->operands[0].step, step_e = walk->operands[1].step;
    const int64_t at_x = at[0] + done * step_x, at_e = at[1] + done * step_e;
    const size_t width = cm_dtype_size(base);
    struct block block;
    float bases[BLOCK], results[BLOCK];

    const void *es = load_exponents(e, kind, at_e, step_e ? n : 1, &block);
    power_fn *quick = shortcut(base, kind, step_e, es);
    power_fn *loop = quick ? quick : powers[base][kind];
    if (!narrow) {
        loop(n, (const char *)x->data + (size_t)at_x * width, step_x, es, step_e,
             (char *)call->out[0]->data + (size_t)to * width);
        return;
    }
    cm_narrow_load(x->type, x->data, at_x, step_x ? n : 1, bases);
    loop(n, bases, step_x, es, step_e, results);
    cm_narrow_store(x->type, call->out[0]->data, to, n, results);
}

static enum cm_status pow_prepare(struct cm_call *call)
{
    cm_walk_plan(call);
    return CM_OK;
}

static enum cm_status pow_run(struct cm_call *call)
{
    const struct cm_walk *walk = call->state;
    const enum cm_dtype type = call->in[0]->type;
    int64_t index[CM_MAX_RANK] = {0}, at[2] = {0};
    if (!powers[type][WHOLE] && !cm_dtype_is_narrow(type))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(type));
    for (int64_t run = 0; run < walk->count; run += walk->run) {
        for (int64_t done = 0; done < walk->run; done += BLOCK) {
            const int64_t left = walk->run - done;
            power_block(call, walk, at, done, left < BLOCK ? left : BLOCK, run + done);
        }
        cm_walk_next(walk, index, at);
    }
    return CM_OK;
}

/* dx = dy * e * x^(e - 1). The zeroth power of 0 has slope 0: there the lower power is taken to be
 * the zeroth too, so that it, and what is differentiated again, stays finite. */
static cm_value base_gradient(struct cm_grad *g, cm_value x, cm_value e, cm_value dy)
{
    const cm_value zero = cm_emit_scalar_like(g, x, 0), one = cm_emit_scalar_like(g, x, 1);
    const cm_value corner =
        cm_emit(g, "And", cm_emit(g, "Equal", e, zero), cm_emit(g, "Equal", x, zero));
    const cm_value lower = cm_emit(g, "Where", corner, zero, cm_emit(g, "Sub", e, one));
    return cm_emit(g, "Mul", dy, cm_emit(g, "Mul", e, cm_emit(g, "Pow", x, lower)));
}

/* de = dy * y * log(x), 0 where the power of 0 stays what it is. */
static cm_value exponent_gradient(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    const cm_value zero = cm_emit_scalar_like(g, x, 0), one = cm_emit_scalar_like(g, x, 1);
    const cm_value at_zero = cm_emit(g, "Equal", x, zero);
    const cm_value safe = cm_emit(g, "Where", at_zero, one, x);
    return cm_emit(g, "Mul", dy, cm_emit(g, "Mul", y, cm_emit(g, "Log", safe)));
}

static enum cm_status pow_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    cm_value e = cm_grad_input(g, 1);
    CM_TRY(g->build.status);
    const enum cm_dtype type = cm_builder_type(&g->build, x)->dtype;
    const enum cm_dtype exponent_type = cm_builder_type(&g->build, e)->dtype;
    if (exponent_type != type)
        e = cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", type)), e);
    if (cm_grad_wants(g, 0))
        CM_TRY(cm_grad_set(g, 0, base_gradient(g, x, e, dy)));
    if (!cm_grad_wants(g, 1))
        return CM_OK;
    cm_value de = exponent_gradient(g, x, cm_grad_output(g, 0), dy);
    if (exponent_type != type)
        de = cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", exponent_type)), de);
    return cm_grad_set(g, 1, de);
}

static enum cm_sharing pow_share(const struct cm_node *node, int output, int input)
{
    (void)node, (void)output;
    return input == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

CM_OP(Pow, .infer = cm_infer_broadcast, .prepare = pow_prepare, .run = pow_run, .grad = pow_grad,
      .share = pow_share);
