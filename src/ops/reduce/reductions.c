/* The rows of the Reduce operators: one number of many terms, and its gradient. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/microsoft/compose.h"
#include "ops/reduce/reduction.h"
#include "tensor/half.h"

#include <math.h>

/* Floats are totalled in double. Integers are totalled modulo 2^64, in unsigned arithmetic, which
 * is right modulo their own width. A mean of nothing is 0 / 0; of integers, 0. Over nothing, the
 * largest and the smallest are what no element can pass. */
#define T          double
#define MODULAR    double
#define FOR(name)  real_##name
#define LEAST      (-INFINITY)
#define MOST       INFINITY
#define OF_NOTHING NAN
#define IS_NAN(x)  isnan(x)
#include "ops/reduce/terms.inc"

#define T          int64_t
#define MODULAR    uint64_t
#define FOR(name)  signed_##name
#define LEAST      INT64_MIN
#define MOST       INT64_MAX
#define OF_NOTHING 0
#define IS_NAN(x)  false
#include "ops/reduce/terms.inc"

#define T          uint64_t
#define MODULAR    uint64_t
#define FOR(name)  unsigned_##name
#define LEAST      0
#define MOST       UINT64_MAX
#define OF_NOTHING 0
#define IS_NAN(x)  false
#include "ops/reduce/terms.inc"

static double log_sum(int64_t n, const double *x)
{
    return log(real_sum(n, x));
}

/* Relative to the largest term, so that exp never overflows; infinities are compared with 0. */
static double log_sum_exp(int64_t n, const double *x)
{
    const double largest = real_max(n, x), base = isinf(largest) ? 0 : largest;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - base);
    return base + log(sum);
}

/* ---- gradients: y and dy have the shape that keepdims gives, so they broadcast against x ---- */

static cm_value spread(struct cm_grad *g, cm_value x, cm_value dy)
{
    return cm_emit(g, "Expand", dy, cm_emit(g, "Shape", x));
}

static cm_value as_number(struct cm_grad *g, cm_value what, cm_value like)
{
    const struct cm_type *type = cm_builder_type(&g->build, like);
    return cm_emit_with(g, "Cast",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&g->build), "to",
                                                  type ? type->dtype : CM_FLOAT)),
                        what);
}

static cm_value sum_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    (void)y;
    return spread(g, x, dy);
}

/* Each term has the share size(y) / size(x). */
static cm_value mean_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    const cm_value terms = cm_emit(g, "Div", cm_emit(g, "Size", x), cm_emit(g, "Size", y));
    return spread(g, x, cm_emit(g, "Div", dy, as_number(g, terms, dy)));
}

static cm_value sum_square_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    (void)y;
    return cm_emit(g, "Mul", cm_emit(g, "Mul", dy, cm_emit_scalar_like(g, x, 2)), x);
}

static cm_value l1_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    (void)y;
    return cm_emit(g, "Mul", cm_emit(g, "Sign", x), dy);
}

/* x / y, and 0 where all terms are 0: the norm has a corner there. */
static cm_value l2_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    const cm_value zero = cm_emit_scalar_like(g, y, 0), one = cm_emit_scalar_like(g, y, 1);
    const cm_value corner = cm_emit(g, "Equal", y, zero);
    const cm_value safe = cm_emit(g, "Where", corner, one, y);
    const cm_value scale = cm_emit(g, "Where", corner, zero, cm_emit(g, "Div", dy, safe));
    return cm_emit(g, "Mul", x, scale);
}

/* y = log(s), so 1 / s = exp(-y). */
static cm_value log_sum_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    return spread(g, x, cm_emit(g, "Mul", dy, cm_emit(g, "Exp", cm_emit(g, "Neg", y))));
}

static cm_value log_sum_exp_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    return cm_emit(g, "Mul", dy, cm_emit(g, "Exp", cm_emit(g, "Sub", x, y)));
}

/* Terms that are all the largest share the gradient evenly. */
static cm_value extreme_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    const cm_value hit = as_number(g, cm_emit(g, "Equal", x, y), x);
    return cm_emit(g, "Mul", hit, cm_emit(g, "Div", dy, cm_reduce_sum_like(g, hit)));
}

/* The product of the terms that are not 0, from the sum of their logarithms and the parity of their
 * signs: opset 17 has no ReduceProd with axes as an operand. */
static cm_value nonzero_product(struct cm_grad *g, cm_value x, cm_value safe)
{
    const cm_value zero = cm_emit_scalar_like(g, x, 0), one = cm_emit_scalar_like(g, x, 1);
    const cm_value two = cm_emit_scalar_like(g, x, 2);
    const cm_value size =
        cm_emit(g, "Exp", cm_reduce_sum_like(g, cm_emit(g, "Log", cm_emit(g, "Abs", safe))));
    const cm_value negative = as_number(g, cm_emit(g, "Less", x, zero), x);
    const cm_value odd =
        cm_emit_with(g, "Mod", CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&g->build), "fmod", 1)),
                     cm_reduce_sum_like(g, negative), two);
    return cm_emit(g, "Mul", size, cm_emit(g, "Sub", one, cm_emit(g, "Mul", two, odd)));
}

/* The product of the other terms: y / x, unless x is 0. Where x is the only zero of its group, that
 * is the product of all that are not 0. Beside one other zero it is 0, written as that zero times
 * the rest, which has the right slope when it is differentiated again; beside more it stays 0. */
static cm_value prod_slope(struct cm_grad *g, cm_value x, cm_value y, cm_value dy)
{
    const cm_value zero = cm_emit_scalar_like(g, x, 0), one = cm_emit_scalar_like(g, x, 1);
    const cm_value is_zero = cm_emit(g, "Equal", x, zero);
    const cm_value safe = cm_emit(g, "Where", is_zero, one, x);
    const cm_value n_zeros = cm_reduce_sum_like(g, as_number(g, is_zero, x));
    const cm_value all_zeros = cm_reduce_sum_like(g, cm_emit(g, "Where", is_zero, x, zero));
    const cm_value beside_two =
        cm_emit(g, "Where", cm_emit(g, "Equal", n_zeros, cm_emit_scalar_like(g, x, 2)),
                cm_emit(g, "Sub", all_zeros, x), zero);
    const cm_value zeros = cm_emit(g, "Where", cm_emit(g, "Equal", n_zeros, one), one, beside_two);
    const cm_value others = cm_emit(g, "Mul", nonzero_product(g, x, safe), zeros);
    const cm_value slope = cm_emit(g, "Where", is_zero, others, cm_emit(g, "Div", y, safe));
    return cm_emit(g, "Mul", dy, slope);
}

#define OF_ALL(name)                                                                               \
    .of_reals = real_##name, .of_signed = signed_##name, .of_unsigned = unsigned_##name
static const struct cm_reduction sum = {OF_ALL(sum), .wraps = true, .slope = sum_slope,
                                        .of_numbers = cm_quantity_sum};
static const struct cm_reduction mean = {OF_ALL(mean), .wraps = true, .slope = mean_slope};
static const struct cm_reduction prod = {OF_ALL(prod), .wraps = true, .slope = prod_slope,
                                         .of_numbers = cm_quantity_product};
static const struct cm_reduction l1 = {OF_ALL(l1), .wraps = true, .slope = l1_slope};
static const struct cm_reduction l2 = {OF_ALL(l2), .slope = l2_slope};
static const struct cm_reduction sum_square = {OF_ALL(sum_square), .wraps = true,
                                               .slope = sum_square_slope};
static const struct cm_reduction log_sums = {.of_reals = log_sum, .slope = log_sum_slope};
static const struct cm_reduction log_sum_exps = {.of_reals = log_sum_exp,
                                                 .slope = log_sum_exp_slope};
static const struct cm_reduction max = {OF_ALL(max), .slope = extreme_slope,
                                        .of_numbers = cm_quantity_larger};
static const struct cm_reduction min = {OF_ALL(min), .slope = extreme_slope,
                                        .of_numbers = cm_quantity_smaller};

/* The sum divided by how many elements went into each. Narrow floats in float, where a sum does not
 * overflow; whole numbers in double. */
static enum cm_status mean_body(struct cm_body *b)
{
    static const char *const names[] = {"keepdims", "noop_with_empty_axes"};
    const cm_value x = cm_body_input(b, 0);
    const enum cm_dtype type = cm_compose_type(b, x)->dtype;
    const bool real = type == CM_FLOAT || type == CM_DOUBLE;
    const enum cm_dtype wide = real ? type : cm_dtype_is_narrow(type) ? CM_FLOAT : CM_DOUBLE;
    const cm_value total = cm_compose_as_called(
        b, "ReduceSum", names, CM_COUNT(names),
        (const cm_value[]){cm_compose_cast(b, x, wide), cm_body_input(b, 1)}, 2);
    const cm_value results =
        cm_emit(b, "Max", cm_emit(b, "Size", total), cm_build_int64(&b->build, 1));
    const cm_value each = cm_emit(b, "Div", cm_emit(b, "Size", x), results);
    const cm_value y = cm_emit(b, "Div", total, cm_compose_cast(b, each, wide));
    return cm_body_return(b, 0, cm_compose_cast(b, y, type));
}

CM_OP(ReduceSum, CM_REDUCTION(sum));
CM_OP(ReduceMean, CM_REDUCTION(mean), .body = mean_body);
CM_OP(ReduceProd, CM_REDUCTION(prod));
CM_OP(ReduceL1, CM_REDUCTION(l1));
CM_OP(ReduceL2, CM_REDUCTION(l2));
CM_OP(ReduceSumSquare, CM_REDUCTION(sum_square));
CM_OP(ReduceLogSum, CM_REDUCTION(log_sums));
CM_OP(ReduceLogSumExp, CM_REDUCTION(log_sum_exps));
CM_OP(ReduceMax, CM_REDUCTION(max));
CM_OP(ReduceMin, CM_REDUCTION(min));
