/* The rows of the Reduce operators: start, fold and finish for each element type. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "ops/microsoft/compose.h"
#include "ops/reduce/reduction.h"
#include "tensor/element_types.h"
#include "tensor/half.h"
#include "tensor/vector_math.h"

#include <math.h>

/* In `step` x is the element and t the total, `join` adds one total u to another. Along a run there
 * are several totals at a time: additions need not wait for each other, and the error grows more
 * slowly. ALONG and ACROSS are the loops of floats, A being the total's type. */
#define ALONG(total, first, step, join)                                                            \
    typedef float T;                                                                               \
    typedef total A;                                                                               \
    enum { LANES = 128 / sizeof(A) };                                                              \
    const T *xs = from;                                                                            \
    A *const ts = totals, lanes[LANES];                                                            \
    int64_t i = 0;                                                                                 \
    if (count >= LANES) {                                                                          \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = (first);                                                                    \
        for (; i + LANES <= count; i += LANES) {                                                   \
            for (int k = 0; k < LANES; k++) {                                                      \
                const T x = xs[i + k];                                                             \
                const A t = lanes[k];                                                              \
                lanes[k] = (A)(step);                                                              \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < LANES; k++) {                                                          \
            const A t = ts[0], u = lanes[k];                                                       \
            ts[0] = (A)(join);                                                                     \
        }                                                                                          \
    }                                                                                              \
    for (; i < count; i++) {                                                                       \
        const T x = xs[i];                                                                         \
        const A t = ts[0];                                                                         \
        ts[0] = (A)(step);                                                                         \
    }
/* Four rows at a time, so that totals are read and written less often. */
#define ACROSS(total, step)                                                                        \
    typedef float T;                                                                               \
    typedef total A;                                                                               \
    const T *row = from;                                                                           \
    A *ts = totals;                                                                                \
    int64_t r = 0;                                                                                 \
    for (; r + 4 <= rows; r += 4, row += 4 * stride) {                                             \
        const T *second = row + stride, *third = second + stride, *fourth = third + stride;        \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            A t = ts[i];                                                                           \
            T x = row[i];                                                                          \
            t = (A)(step);                                                                         \
            x = second[i];                                                                         \
            t = (A)(step);                                                                         \
            x = third[i];                                                                          \
            t = (A)(step);                                                                         \
            x = fourth[i];                                                                         \
            ts[i] = (A)(step);                                                                     \
        }                                                                                          \
    }                                                                                              \
    for (; r < rows; r++, row += stride) {                                                         \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T x = row[i];                                                                    \
            const A t = ts[i];                                                                     \
            ts[i] = (A)(step);                                                                     \
        }                                                                                          \
    }
#define START(name, TAG, total, first)                                                             \
    static CM_BUILT_##TAG void name##_start_##TAG(int64_t count, void *totals)                     \
    {                                                                                              \
        total *ts = totals;                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            ts[i] = (first);                                                                       \
    }
#define FOLD_LOOPS(name, TAG, ctype, total, first, step, join)                                     \
    START(name, TAG, total, first)                                                                 \
    static CM_BUILT_##TAG void name##_across_##TAG(int64_t count, int64_t rows, int64_t stride,    \
                                                   const void *from, void *totals)                 \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        total *ts = totals;                                                                        \
        for (int64_t r = 0; r < rows; r++, xs += stride) {                                         \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const ctype x = xs[i];                                                             \
                const total t = ts[i];                                                             \
                ts[i] = (total)(step);                                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static CM_BUILT_##TAG void name##_along_##TAG(int64_t count, const void *from, void *totals)   \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        total *ts = totals, four[4] = {(first), (first), (first), (first)};                        \
        name##_across_##TAG(4, count / 4, 4, from, four);                                          \
        for (int k = 0; k < 4 && count >= 4; k++) {                                                \
            const total t = ts[0], u = four[k];                                                    \
            ts[0] = (total)(join);                                                                 \
        }                                                                                          \
        for (int64_t i = count - count % 4; i < count; i++) {                                      \
            const ctype x = xs[i];                                                                 \
            const total t = ts[0];                                                                 \
            ts[0] = (total)(step);                                                                 \
        }                                                                                          \
    }
/* The same of floats, built per machine. */
#define FLOAT_FOLD_LOOPS(name, total, first, step, join)                                           \
    START(name, FLOAT, total, first)                                                               \
    static CM_ALWAYS_INLINE void name##_floats_along_on(enum cm_machine machine, int64_t count,    \
                                                        const float *from, void *totals)           \
    {                                                                                              \
        (void)machine;                                                                             \
        ALONG(total, first, step, join)                                                            \
    }                                                                                              \
    CM_BUILDS(name##_floats_along, (int64_t count, const float *from, void *totals),               \
              (machine, count, from, totals))                                                      \
    static void name##_along_FLOAT(int64_t count, const void *from, void *totals)                  \
    {                                                                                              \
        name##_floats_along_builds[cm_this_machine()](count, from, totals);                        \
    }                                                                                              \
    static CM_ALWAYS_INLINE void name##_floats_across_on(enum cm_machine machine, int64_t count,   \
                                                         int64_t rows, int64_t stride,             \
                                                         const float *from, void *totals)          \
    {                                                                                              \
        (void)machine;                                                                             \
        ACROSS(total, step)                                                                        \
    }                                                                                              \
    CM_BUILDS(name##_floats_across,                                                                \
              (int64_t count, int64_t rows, int64_t stride, const float *from, void *totals),      \
              (machine, count, rows, stride, from, totals))                                        \
    static void name##_across_FLOAT(int64_t count, int64_t rows, int64_t stride, const void *from, \
                                    void *totals)                                                  \
    {                                                                                              \
        name##_floats_across_builds[cm_this_machine()](count, rows, stride, from, totals);         \
    }
/* In `done` t is the total and n the number of terms. */
#define FINISH(name, TAG, ctype, total, done)                                                      \
    static CM_BUILT_##TAG void name##_finish_##TAG(int64_t count, const void *totals, int64_t n,   \
                                                   void *to)                                       \
    {                                                                                              \
        typedef ctype T;                                                                           \
        typedef total A;                                                                           \
        const A *ts = totals;                                                                      \
        T *ys = to;                                                                                \
        (void)n;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const A t = ts[i];                                                                     \
            ys[i] = (T)(done);                                                                     \
        }                                                                                          \
    }
#define REDUCE_LOOPS(name, TAG, ctype, total, first, step, join, done)                             \
    FOLD_LOOPS(name, TAG, ctype, total, first, step, join)                                         \
    FINISH(name, TAG, ctype, total, done)

/* Totals of parts, joined: of floats. */
#define JOIN(name, total, join)                                                                    \
    static void join_##name(int64_t count, const void *more, void *totals)                         \
    {                                                                                              \
        const total *us = more;                                                                    \
        total *ts = totals;                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const total t = ts[i], u = us[i];                                                      \
            ts[i] = (join);                                                                        \
        }                                                                                          \
    }
JOIN(sums, double, t + u)
JOIN(products, double, t *u)
JOIN(largest, float, u > t || isnan(u) ? u : t)
JOIN(smallest, float, u < t || isnan(u) ? u : t)

/* The loops of `name`, which gathers its totals as `as` does. */
#define ENTRY(TAG, as, name)                                                                       \
    [CM_##TAG] = {.start = as##_start_##TAG,                                                       \
                  .along = as##_along_##TAG,                                                       \
                  .across = as##_across_##TAG,                                                     \
                  .finish = name##_finish_##TAG},
#define REDUCE_ENTRY(TAG, ctype, name, extra) ENTRY(TAG, name, name)

/* Types of most reductions, and of Max and Min. */
#define WIDE_SIGNED(ROW, name, extra)                                                              \
    ROW(INT32, int32_t, name, extra) ROW(INT64, int64_t, name, extra)
#define WIDE_UNSIGNED(ROW, name, extra)                                                            \
    ROW(UINT32, uint32_t, name, extra) ROW(UINT64, uint64_t, name, extra)
#define WIDE_TYPES(ROW, name, extra)                                                               \
    CM_FLOAT_TYPES(ROW, name, extra) WIDE_SIGNED(ROW, name, extra) WIDE_UNSIGNED(ROW, name, extra)

#define TABLE(name, TYPES)                                                                         \
    static const struct cm_reduce_loops name##_loops[CM_DTYPE_COUNT] = {                           \
        TYPES(REDUCE_ENTRY, name, ())}

/* Floats are totalled in double. Integers are totalled modulo 2^64, in unsigned arithmetic, which
 * is right modulo their own width; what divides or takes roots reads the total with its sign. */
#define SUM_INTEGER(TAG, ctype, name, extra)                                                       \
    REDUCE_LOOPS(name, TAG, ctype, uint64_t, 0, t + (uint64_t)x, t + u, t)
#define AS_TOTAL(TAG, ctype, name, extra) FINISH(name, TAG, ctype, double, t)
FLOAT_FOLD_LOOPS(sum, double, 0, t + (double)x, t + u)
FOLD_LOOPS(sum, DOUBLE, double, double, 0, t + x, t + u)
CM_FLOAT_TYPES(AS_TOTAL, sum, ())
WIDE_SIGNED(SUM_INTEGER, sum, ())
WIDE_UNSIGNED(SUM_INTEGER, sum, ())
TABLE(sum, WIDE_TYPES);

/* Finished sums. A mean of nothing is 0 / 0; of integers, 0. Integer means round towards zero. */
#define SUM_ENTRY(TAG, ctype, name, extra)  ENTRY(TAG, sum, name)
#define MEAN_FLOAT(TAG, ctype, name, extra) FINISH(name, TAG, ctype, double, t / (double)n)
#define MEAN_SIGNED(TAG, ctype, name, extra)                                                       \
    FINISH(name, TAG, ctype, uint64_t, n ? (int64_t)t / n : 0)
#define MEAN_UNSIGNED(TAG, ctype, name, extra)                                                     \
    FINISH(name, TAG, ctype, uint64_t, n ? t / (uint64_t)n : 0)
CM_FLOAT_TYPES(MEAN_FLOAT, mean, ())
WIDE_SIGNED(MEAN_SIGNED, mean, ())
WIDE_UNSIGNED(MEAN_UNSIGNED, mean, ())
static const struct cm_reduce_loops mean_loops[CM_DTYPE_COUNT] = {WIDE_TYPES(SUM_ENTRY, mean, ())};

#define LOG_SUM_ROW(TAG, ctype, name, extra) FINISH(name, TAG, ctype, double, log(t))
CM_FLOAT_TYPES(LOG_SUM_ROW, log_sum, ())
static const struct cm_reduce_loops log_sum_loops[CM_DTYPE_COUNT] = {
    CM_FLOAT_TYPES(SUM_ENTRY, log_sum, ())};

#define PROD_FLOAT(TAG, ctype, name, extra)                                                        \
    REDUCE_LOOPS(name, TAG, ctype, double, 1, t *(double)x, t *u, t)
#define PROD_INTEGER(TAG, ctype, name, extra)                                                      \
    REDUCE_LOOPS(name, TAG, ctype, uint64_t, 1, t *(uint64_t)x, t *u, t)
CM_FLOAT_TYPES(PROD_FLOAT, prod, ())
WIDE_SIGNED(PROD_INTEGER, prod, ())
WIDE_UNSIGNED(PROD_INTEGER, prod, ())
TABLE(prod, WIDE_TYPES);

#define L1_FLOAT(TAG, ctype, name, extra)                                                          \
    REDUCE_LOOPS(name, TAG, ctype, double, 0, t + fabs((double)x), t + u, t)
#define L1_SIGNED(TAG, ctype, name, extra)                                                         \
    REDUCE_LOOPS(name, TAG, ctype, uint64_t, 0, x < 0 ? t - (uint64_t)x : t + (uint64_t)x, t + u, t)
CM_FLOAT_TYPES(L1_FLOAT, l1, ())
WIDE_SIGNED(L1_SIGNED, l1, ())
WIDE_UNSIGNED(SUM_INTEGER, l1, ())
TABLE(l1, WIDE_TYPES);

#define SQUARE_INTEGER(TAG, ctype, name, extra)                                                    \
    REDUCE_LOOPS(name, TAG, ctype, uint64_t, 0, t + (uint64_t)x * (uint64_t)x, t + u, t)
FLOAT_FOLD_LOOPS(sum_square, double, 0, t + (double)x * (double)x, t + u)
FOLD_LOOPS(sum_square, DOUBLE, double, double, 0, t + x * x, t + u)
CM_FLOAT_TYPES(AS_TOTAL, sum_square, ())
WIDE_SIGNED(SQUARE_INTEGER, sum_square, ())
WIDE_UNSIGNED(SQUARE_INTEGER, sum_square, ())
TABLE(sum_square, WIDE_TYPES);

/* Squares of integers are totalled in double: their root mostly fits the type even where their sum
 * would not. */
static uint64_t root_up_to(double t, uint64_t most)
{
    return sqrt(t) < (double)most ? (uint64_t)sqrt(t) : most;
}

#define SQUARES_OF_INTEGERS(TAG, ctype, name, extra)                                               \
    FOLD_LOOPS(name, TAG, ctype, double, 0, t + (double)x * (double)x, t + u)
WIDE_SIGNED(SQUARES_OF_INTEGERS, l2, ())
WIDE_UNSIGNED(SQUARES_OF_INTEGERS, l2, ())
FINISH(l2, FLOAT, float, double, sqrt(t))
FINISH(l2, DOUBLE, double, double, sqrt(t))
FINISH(l2, INT32, int32_t, double, root_up_to(t, INT32_MAX))
FINISH(l2, INT64, int64_t, double, root_up_to(t, INT64_MAX))
FINISH(l2, UINT32, uint32_t, double, root_up_to(t, UINT32_MAX))
FINISH(l2, UINT64, uint64_t, double, root_up_to(t, UINT64_MAX))
static const struct cm_reduce_loops l2_loops[CM_DTYPE_COUNT] = {ENTRY(FLOAT, sum_square, l2) ENTRY(
    DOUBLE, sum_square, l2) WIDE_SIGNED(REDUCE_ENTRY, l2, ()) WIDE_UNSIGNED(REDUCE_ENTRY, l2, ())};

/* log(sum of exp), as the largest term and the sum of exp relative to it, so that exp never
 * overflows. */
struct exponentials {
    double largest, sum;
};

static struct exponentials add_exponentials(struct exponentials t, struct exponentials u)
{
    if (u.largest == t.largest) /* two infinities too: their difference would be NaN */
        return (struct exponentials){t.largest, t.sum + u.sum};
    if (u.largest > t.largest)
        return (struct exponentials){u.largest, t.sum * exp(t.largest - u.largest) + u.sum};
    return (struct exponentials){t.largest, t.sum + u.sum * exp(u.largest - t.largest)};
}

static void log_sum_exp_start(int64_t count, void *totals)
{
    struct exponentials *ts = totals;
    for (int64_t i = 0; i < count; i++)
        ts[i] = (struct exponentials){-INFINITY, 0};
}

static void log_sum_exp_join(int64_t count, const void *more, void *totals)
{
    const struct exponentials *us = more;
    struct exponentials *ts = totals;
    for (int64_t i = 0; i < count; i++)
        ts[i] = add_exponentials(ts[i], us[i]);
}

#define LOG_SUM_EXP_ROW(TAG, ctype, name, extra)                                                   \
    static CM_BUILT_##TAG void name##_finish_##TAG(int64_t count, const void *totals,              \
                                                   int64_t terms, void *to)                        \
    {                                                                                              \
        const struct exponentials *ts = totals;                                                    \
        ctype *ys = to;                                                                            \
        (void)terms;                                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            ys[i] = (ctype)(ts[i].largest + log(ts[i].sum));                                       \
    }
CM_FLOAT_TYPES(LOG_SUM_EXP_ROW, log_sum_exp, ())

static void log_sum_exp_across_DOUBLE(int64_t count, int64_t rows, int64_t stride, const void *from,
                                      void *totals)
{
    const double *xs = from;
    struct exponentials *ts = totals;
    for (int64_t r = 0; r < rows; r++, xs += stride)
        for (int64_t i = 0; i < count; i++)
            ts[i] = add_exponentials(ts[i], (struct exponentials){xs[i], 1});
}

static void log_sum_exp_along_DOUBLE(int64_t count, const void *from, void *totals)
{
    log_sum_exp_across_DOUBLE(1, count, 1, from, totals);
}

enum { BLOCK = 256 };

/* A bound for differences to the largest: infinities are compared with 0. */
static float finite_or_0(float x)
{
    return isfinite(x) ? x : 0;
}

/* Of floats in two passes over a block: its largest, then vectors of exp. */
static void log_sum_exp_along_FLOAT(int64_t count, const void *from, void *totals)
{
    const float *xs = from;
    for (int64_t at = 0; at < count; at += BLOCK, xs += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK], largest = -INFINITY;
        struct exponentials sum = {0, 0};
        for (int64_t i = 0; i < n; i++)
            largest = xs[i] > largest ? xs[i] : largest; /* NaN stays in the sum */
        for (int64_t i = 0; i < n; i++)
            block[i] = xs[i] - finite_or_0(largest);
        cm_exp_floats(n, block, block);
        sum.largest = (double)largest;
        for (int64_t i = 0; i < n; i++)
            sum.sum += (double)block[i];
        log_sum_exp_join(1, &sum, totals);
    }
}

static void log_sum_exp_across_FLOAT(int64_t count, int64_t rows, int64_t stride, const void *from,
                                     void *totals)
{
    const float *xs = from;
    struct exponentials sums[BLOCK];
    float largest[BLOCK], block[BLOCK];
    for (int64_t i = 0; i < count; i++) {
        largest[i] = -INFINITY;
        sums[i].sum = 0;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < count; i++)
            largest[i] = xs[r * stride + i] > largest[i] ? xs[r * stride + i] : largest[i];
    for (int64_t i = 0; i < count; i++)
        sums[i].largest = (double)largest[i];
    for (int64_t r = 0; r < rows; r++, xs += stride) {
        for (int64_t i = 0; i < count; i++)
            block[i] = xs[i] - finite_or_0(largest[i]);
        cm_exp_floats(count, block, block);
        for (int64_t i = 0; i < count; i++)
            sums[i].sum += (double)block[i];
    }
    log_sum_exp_join(count, sums, totals);
}

#define LOG_SUM_EXP_ENTRY(TAG, ctype, name, extra)                                                 \
    [CM_##TAG] = {name##_start, name##_along_##TAG, name##_across_##TAG, name##_finish_##TAG},
static const struct cm_reduce_loops log_sum_exp_loops[CM_DTYPE_COUNT] = {
    CM_FLOAT_TYPES(LOG_SUM_EXP_ENTRY, log_sum_exp, ())};

/* The largest and the smallest: NaN wins over both. Over nothing, what no element can pass. */
#define LEAST_INT8   INT8_MIN
#define LEAST_INT16  INT16_MIN
#define LEAST_INT32  INT32_MIN
#define LEAST_INT64  INT64_MIN
#define LEAST_UINT8  0
#define LEAST_UINT16 0
#define LEAST_UINT32 0
#define LEAST_UINT64 0
#define MOST_INT8    INT8_MAX
#define MOST_INT16   INT16_MAX
#define MOST_INT32   INT32_MAX
#define MOST_INT64   INT64_MAX
#define MOST_UINT8   UINT8_MAX
#define MOST_UINT16  UINT16_MAX
#define MOST_UINT32  UINT32_MAX
#define MOST_UINT64  UINT64_MAX

#define MAX_INTEGER(TAG, ctype, name, extra)                                                       \
    REDUCE_LOOPS(name, TAG, ctype, ctype, LEAST_##TAG, x > t ? x : t, u > t ? u : t, t)
#define MIN_INTEGER(TAG, ctype, name, extra)                                                       \
    REDUCE_LOOPS(name, TAG, ctype, ctype, MOST_##TAG, x < t ? x : t, u < t ? u : t, t)
#define ORDERED_TYPES(ROW, name, extra)                                                            \
    CM_NUMBER_TYPES(ROW, name, extra) CM_BOOL_TYPES(ROW, name, extra)
#define OWN_TOTAL(TAG, ctype, name, extra) FINISH(name, TAG, ctype, ctype, t)
#define OWN_TABLE(name)                                                                            \
    static const struct cm_reduce_loops name##_loops[CM_DTYPE_COUNT] = {                           \
        ORDERED_TYPES(REDUCE_ENTRY, name, ())}
FLOAT_FOLD_LOOPS(max, float, -INFINITY, x > t || isnan(x) ? x : t, u > t || isnan(u) ? u : t)
FOLD_LOOPS(max, DOUBLE, double, double, -INFINITY, x > t || isnan(x) ? x : t,
           u > t || isnan(u) ? u : t)
CM_FLOAT_TYPES(OWN_TOTAL, max, ())
CM_INTEGER_TYPES(MAX_INTEGER, max, ())
REDUCE_LOOPS(max, BOOL, uint8_t, uint8_t, 0, t || x, t || u, t)
OWN_TABLE(max);
FLOAT_FOLD_LOOPS(min, float, INFINITY, x < t || isnan(x) ? x : t, u < t || isnan(u) ? u : t)
FOLD_LOOPS(min, DOUBLE, double, double, INFINITY, x < t || isnan(x) ? x : t,
           u < t || isnan(u) ? u : t)
CM_FLOAT_TYPES(OWN_TOTAL, min, ())
CM_INTEGER_TYPES(MIN_INTEGER, min, ())
REDUCE_LOOPS(min, BOOL, uint8_t, uint8_t, 1, t &&x, t &&u, t)
OWN_TABLE(min);

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

static const struct cm_reduction sum = {sum_loops, sum_slope, cm_quantity_sum, join_sums};
static const struct cm_reduction mean = {mean_loops, mean_slope, NULL, join_sums};
static const struct cm_reduction prod = {prod_loops, prod_slope, cm_quantity_product,
                                         join_products};
static const struct cm_reduction l1 = {l1_loops, l1_slope, NULL, join_sums};
static const struct cm_reduction l2 = {l2_loops, l2_slope, NULL, join_sums};
static const struct cm_reduction sum_square = {sum_square_loops, sum_square_slope, NULL, join_sums};
static const struct cm_reduction log_sum = {log_sum_loops, log_sum_slope, NULL, join_sums};
static const struct cm_reduction log_sum_exp = {log_sum_exp_loops, log_sum_exp_slope, NULL,
                                                log_sum_exp_join};
static const struct cm_reduction max = {max_loops, extreme_slope, cm_quantity_larger, join_largest};
static const struct cm_reduction min = {min_loops, extreme_slope, cm_quantity_smaller,
                                        join_smallest};

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
CM_OP(ReduceLogSum, CM_REDUCTION(log_sum));
CM_OP(ReduceLogSumExp, CM_REDUCTION(log_sum_exp));
CM_OP(ReduceMax, CM_REDUCTION(max));
CM_OP(ReduceMin, CM_REDUCTION(min));
