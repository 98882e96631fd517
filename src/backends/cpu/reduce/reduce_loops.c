/* The rows of the Reduce operators: start, fold, join and finish for each element type. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/reduce_loops.h"

#include "base/machine.h"
#include "tensor/element_types.h"
#include "tensor/vector_math.h"

#include <math.h>

/* In `step` x is the element and t the total, `join` adds one total u to another. */
#define START(name, TAG, total, first)                                                             \
    static CM_BUILT_##TAG void name##_start_##TAG(int64_t count, void *totals)                     \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((total *)totals)[i] = (first);                                                        \
    }
#define JOIN(name, TAG, total, join)                                                               \
    static CM_BUILT_##TAG void name##_join_##TAG(int64_t count, const void *more, void *totals)    \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const total t = ((total *)totals)[i], u = ((const total *)more)[i];                    \
            ((total *)totals)[i] = (total)(join);                                                  \
        }                                                                                          \
    }
#define PARAMETERS int64_t count, int64_t rows, int64_t stride, const void *from, void *totals
#define ACROSS(name, TAG, ctype, total, step)                                                      \
    static CM_BUILT_##TAG void name##_across_##TAG(PARAMETERS)                                     \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const ctype x = ((const ctype *)from)[r * stride + i];                             \
                const total t = ((total *)totals)[i];                                              \
                ((total *)totals)[i] = (total)(step);                                              \
            }                                                                                      \
    }
/* Along a run there are several totals at a time: additions need not wait for each other, and the
 * error grows more slowly. */
#define ALONG(name, TAG, ctype, total)                                                             \
    static CM_BUILT_##TAG void name##_along_##TAG(int64_t count, const void *from, void *totals)   \
    {                                                                                              \
        total four[4];                                                                             \
        name##_start_##TAG(4, four);                                                               \
        name##_across_##TAG(4, count / 4, 4, from, four);                                          \
        for (int k = 0; k < 4 && count >= 4; k++)                                                  \
            name##_join_##TAG(1, four + k, totals);                                                \
        name##_across_##TAG(1, count % 4, 1, (const ctype *)from + (count - count % 4), totals);   \
    }
#define FOLD_LOOPS(name, TAG, ctype, total, first, step, join)                                     \
    START(name, TAG, total, first)                                                                 \
    JOIN(name, TAG, total, join)                                                                   \
    ACROSS(name, TAG, ctype, total, step)                                                          \
    ALONG(name, TAG, ctype, total)
/* The loops of reduce_floats.inc, built per machine. */
#define BUILDS(name)                                                                               \
    CM_BUILDS(name##_floats_along, (int64_t count, const float *from, void *totals),               \
              (machine, count, from, totals))                                                      \
    CM_BUILDS(name##_floats_across, (FLOATS), (machine, count, rows, stride, from, totals))        \
    CALL(name##_along_FLOAT, (int64_t count, const void *from, void *totals),                      \
         name##_floats_along_builds[cm_this_machine()](count, from, totals))                       \
    CALL(name##_across_FLOAT, (PARAMETERS),                                                        \
         name##_floats_across_builds[cm_this_machine()](count, rows, stride, from, totals))
#define FLOATS int64_t count, int64_t rows, int64_t stride, const float *from, void *totals
#define CALL(name, parameters, call)                                                               \
    static void name parameters                                                                    \
    {                                                                                              \
        call;                                                                                      \
    }
/* In `done` t is the total and n the number of terms. */
#define FINISH(name, TAG, ctype, total, done)                                                      \
    static CM_BUILT_##TAG void name##_finish_##TAG(int64_t count, const void *totals, int64_t n,   \
                                                   void *to)                                       \
    {                                                                                              \
        (void)n;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const total t = ((const total *)totals)[i];                                            \
            ((ctype *)to)[i] = (ctype)(done);                                                      \
        }                                                                                          \
    }
#define REDUCE_LOOPS(name, TAG, ctype, total, first, step, join, done)                             \
    FOLD_LOOPS(name, TAG, ctype, total, first, step, join)                                         \
    FINISH(name, TAG, ctype, total, done)

/* The loops of `name`, which gathers its totals as `as` does. */
#define ENTRY(TAG, as, name)                                                                       \
    [CM_##TAG] = {.start = as##_start_##TAG,                                                       \
                  .along = as##_along_##TAG,                                                       \
                  .across = as##_across_##TAG,                                                     \
                  .join = as##_join_##TAG,                                                         \
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
#define FOR(name)                         sum_##name
#define A                                 double
#define FIRST                             0
#define STEP                              t + (double)x
#define JOINED                            t + u
#include "backends/cpu/reduce/reduce_floats.inc"
BUILDS(sum)
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
#define FOR(name) sum_square_##name
#define A         double
#define FIRST     0
#define STEP      t + (double)x *(double)x
#define JOINED    t + u
#include "backends/cpu/reduce/reduce_floats.inc"
BUILDS(sum_square)
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
    [CM_##TAG] = {name##_start, name##_along_##TAG, name##_across_##TAG, name##_join,              \
                  name##_finish_##TAG},
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
#define FOR(name) max_##name
#define A         float
#define FIRST     -INFINITY
#define STEP      x > t || isnan(x) ? x : t
#define JOINED    u > t || isnan(u) ? u : t
#include "backends/cpu/reduce/reduce_floats.inc"
BUILDS(max)
FOLD_LOOPS(max, DOUBLE, double, double, -INFINITY, x > t || isnan(x) ? x : t,
           u > t || isnan(u) ? u : t)
CM_FLOAT_TYPES(OWN_TOTAL, max, ())
CM_INTEGER_TYPES(MAX_INTEGER, max, ())
REDUCE_LOOPS(max, BOOL, uint8_t, uint8_t, 0, t || x, t || u, t)
OWN_TABLE(max);
#define FOR(name) min_##name
#define A         float
#define FIRST     INFINITY
#define STEP      x < t || isnan(x) ? x : t
#define JOINED    u < t || isnan(u) ? u : t
#include "backends/cpu/reduce/reduce_floats.inc"
BUILDS(min)
FOLD_LOOPS(min, DOUBLE, double, double, INFINITY, x < t || isnan(x) ? x : t,
           u < t || isnan(u) ? u : t)
CM_FLOAT_TYPES(OWN_TOTAL, min, ())
CM_INTEGER_TYPES(MIN_INTEGER, min, ())
REDUCE_LOOPS(min, BOOL, uint8_t, uint8_t, 1, t &&x, t &&u, t)
OWN_TABLE(min);

const struct cm_reduce_loops *cm_reduce_loops(struct cm_str op_type)
{
    static const struct {
        const char *name;
        const struct cm_reduce_loops *loops;
    } rows[] = {{"ReduceSum", sum_loops},        {"ReduceMean", mean_loops},
                {"ReduceProd", prod_loops},      {"ReduceL1", l1_loops},
                {"ReduceL2", l2_loops},          {"ReduceSumSquare", sum_square_loops},
                {"ReduceLogSum", log_sum_loops}, {"ReduceLogSumExp", log_sum_exp_loops},
                {"ReduceMax", max_loops},        {"ReduceMin", min_loops}};
    size_t i = 0;
    while (i < CM_COUNT(rows) && !cm_str_is(op_type, rows[i].name))
        i++;
    return i < CM_COUNT(rows) ? rows[i].loops : NULL;
}
