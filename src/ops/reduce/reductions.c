/* The rows of the Reduce operators: one number of many terms, and its gradient. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
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

/* The sum over the same axes: of all reductions only ReduceSum takes axes as an operand at opset
 * 17. */
#define SLOPE(text)                                                                                \
    "x, y, dy, axes: total(t) = ReduceSum<keepdims=1, noop_with_empty_axes>(t, axes);" text

/* x / y, and 0 where all terms are 0: the norm has a corner there. */
static const char l2_slope[] =
    SLOPE("zero = like(y, 0); one = like(y, 1); corner = Equal(y, zero);"
          "safe = Where(corner, one, y); x * Where(corner, zero, dy / safe)");

/* Terms that are all the largest share the gradient evenly. */
static const char extreme_slope[] = SLOPE("hit = cast(Equal(x, y), x); hit * (dy / total(hit))");

/* The product of the other terms: y / x, unless x is 0. Where x is the only zero of its group, that
 * is the product of all that are not 0, from the sum of their logarithms and the parity of their
 * signs. Next to one other zero it is 0, written as that zero times the rest, which has the right
 * slope when it is differentiated again; next to more it stays 0. */
static const char prod_slope[] =
    SLOPE("zero = like(x, 0); one = like(x, 1); is_zero = Equal(x, zero);"
          "safe = Where(is_zero, one, x); n_zeros = total(cast(is_zero, x));"
          "all_zeros = total(Where(is_zero, x, zero));"
          "of_two = Where(Equal(n_zeros, 2), all_zeros - x, zero);"
          "zeros = Where(Equal(n_zeros, one), one, of_two);"
          "none = like(x, 0); unit = like(x, 1); two = like(x, 2);"
          "size = Exp(total(Log(Abs(safe)))); negative = cast(Less(x, none), x);"
          "odd = Mod<fmod=1>(total(negative), two); others = size * (unit - two * odd) * zeros;"
          "dy * Where(is_zero, others, y / safe)");

#define OF_ALL(name)                                                                               \
    .of_reals = real_##name, .of_signed = signed_##name, .of_unsigned = unsigned_##name
static const struct cm_reduction sum = {OF_ALL(sum), .wraps = true,
                                        .slope = SLOPE("Expand(dy, Shape(x))"),
                                        .of_numbers = cm_quantity_sum};
/* Each term has the share size(y) / size(x). */
static const struct cm_reduction mean = {
    OF_ALL(mean), .wraps = true,
    .slope = SLOPE("each = dy / cast(Size(x) / Size(y), dy); Expand(each, Shape(x))")};
static const struct cm_reduction prod = {OF_ALL(prod), .wraps = true, .slope = prod_slope,
                                         .of_numbers = cm_quantity_product};
static const struct cm_reduction l1 = {OF_ALL(l1), .wraps = true, .slope = SLOPE("Sign(x) * dy")};
static const struct cm_reduction l2 = {OF_ALL(l2), .slope = l2_slope};
static const struct cm_reduction sum_square = {OF_ALL(sum_square), .wraps = true,
                                               .slope = SLOPE("dy * 2 * x")};
/* y = log(s), so 1 / s = exp(-y). */
static const struct cm_reduction log_sums = {.of_reals = log_sum,
                                             .slope = SLOPE("Expand(dy * Exp(-y), Shape(x))")};
static const struct cm_reduction log_sum_exps = {.of_reals = log_sum_exp,
                                                 .slope = SLOPE("dy * Exp(x - y)")};
static const struct cm_reduction max = {OF_ALL(max), .slope = extreme_slope,
                                        .of_numbers = cm_quantity_larger};
static const struct cm_reduction min = {OF_ALL(min), .slope = extreme_slope,
                                        .of_numbers = cm_quantity_smaller};

/* The sum divided by how many elements went into each. Narrow floats in float, where a sum does not
 * overflow; whole numbers in double. */
static enum cm_status mean_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool real = type == CM_FLOAT || type == CM_DOUBLE;
    const enum cm_dtype wide = real ? type : cm_dtype_is_narrow(type) ? CM_FLOAT : CM_DOUBLE;
    const cm_value x = cm_emit_cast(b, cm_body_input(b, 0), wide);
    const cm_value y =
        cm_emit_formula(b,
                        "x, axes: total = ReduceSum<keepdims?, noop_with_empty_axes?>(x, axes);"
                        "results = Max(Size(total), 1); total / cast(Size(x) / results, x)",
                        x, cm_body_input(b, 1));
    return cm_body_return(b, 0, cm_emit_cast(b, y, type));
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
