/* AveragePool and LpPool and their global forms: sums over windows, turned into a mean or a norm.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/planes.h"
#include "ops/pool/pool_grad.h"
#include "ops/pool/spread.h"
#include "tensor/element_types.h"

#include <math.h>

struct sum_pool;

/* What becomes of the sum of the terms of one window. */
typedef double finish_fn(const struct sum_pool *pool, double sum, const int64_t *at);

struct sum_pool {
    struct cm_planes planes;
    bool count_pads; /* padding counts in the divisor of the mean */
    double p;        /* of the norm */
    finish_fn *finish;
    cm_plane_fn *const *by_type;
};

/* Sums are made in double. The expression turns the element v into its term. */
#define SUM_ROW(TAG, ctype, name, expression)                                                      \
    static void name##_##TAG(const struct cm_planes *planes, const void *from, void *to,           \
                             int64_t *indices, int64_t base)                                       \
    {                                                                                              \
        const struct sum_pool *pool = (const struct sum_pool *)planes;                             \
        const ctype *x = from;                                                                     \
        ctype *y = to;                                                                             \
        const int last = planes->window.rank - 1;                                                  \
        const int64_t step = planes->window.dilation[last];                                        \
        int64_t at[CM_MAX_RANK] = {0}, low[CM_MAX_RANK], high[CM_MAX_RANK], tap[CM_MAX_RANK];      \
        (void)indices, (void)base;                                                                 \
        for (int64_t o = 0; o < planes->out_plane; o++) {                                          \
            double sum = 0;                                                                        \
            if (cm_planes_clip(planes, at, low, high)) {                                           \
                memcpy(tap, low, (size_t)(last + 1) * sizeof tap[0]);                              \
                do {                                                                               \
                    const ctype *row = x;                                                          \
                    for (int i = 0; i < last; i++)                                                 \
                        row += tap[i] * planes->x_strides[i];                                      \
                    for (int64_t t = low[last]; t < high[last]; t += step) {                       \
                        const double v = (double)row[t];                                           \
                        sum += (expression);                                                       \
                    }                                                                              \
                } while (cm_planes_next_tap(planes, last, tap, low, high));                        \
            }                                                                                      \
            y[o] = (ctype)pool->finish(pool, sum, at);                                             \
            cm_planes_next_window(planes, at);                                                     \
        }                                                                                          \
    }
#define SUM_PLANES(name, expression)                                                               \
    CM_FLOAT_TYPES(SUM_ROW, name, expression)                                                      \
    static cm_plane_fn *const name##_planes[CM_DTYPE_COUNT] = {                                    \
        CM_FLOAT_TYPES(CM_LOOP_ENTRY, name, ())};

SUM_PLANES(plain, v)
SUM_PLANES(magnitude, fabs(v))
SUM_PLANES(square, v *v)
SUM_PLANES(power, pow(fabs(v), pool->p))

static double finish_mean(const struct sum_pool *pool, double sum, const int64_t *at)
{
    return sum / cm_planes_divisor(&pool->planes, pool->count_pads, at);
}

static double finish_sum(const struct sum_pool *pool, double sum, const int64_t *at)
{
    (void)pool, (void)at;
    return sum;
}

static double finish_square(const struct sum_pool *pool, double sum, const int64_t *at)
{
    (void)pool, (void)at;
    return sqrt(sum);
}

static double finish_power(const struct sum_pool *pool, double sum, const int64_t *at)
{
    (void)at;
    return pow(sum, 1 / pool->p);
}

/* The member of the family that a node is. */
struct member {
    bool global, norm;
};
static const struct member average = {false, false}, global_average = {true, false};
static const struct member lp = {false, true}, global_lp = {true, true};

static enum cm_status sum_pool_prepare(struct cm_call *call)
{
    struct sum_pool *pool = cm_call_state(call, sizeof *pool);
    const struct member *member = call->op->arg;
    pool->finish = finish_mean;
    pool->by_type = plain_planes;
    pool->count_pads = cm_node_int(call->node, "count_include_pad") != 0;
    if (member->norm) {
        const int64_t p = cm_node_int(call->node, "p");
        if (p < 1)
            return cm_call_fail(call, CM_BAD_MODEL, "p is %lld, must be at least 1", (long long)p);
        pool->p = (double)p;
        pool->finish = p == 1 ? finish_sum : p == 2 ? finish_square : finish_power;
        pool->by_type = p == 1 ? magnitude_planes : p == 2 ? square_planes : power_planes;
    }
    return cm_planes_plan(call, member->global, &pool->planes);
}

static enum cm_status sum_pool_run(struct cm_call *call)
{
    const struct sum_pool *pool = call->state;
    return cm_planes_run(call, &pool->planes, pool->by_type);
}

/* dy * y^(1 - p), which has the derivative by x less its factor |x|^(p - 1) sign(x); 0 where y is,
 * there is no derivative. */
static cm_value norm_weight(struct cm_grad *g, int64_t p)
{
    const cm_value y = cm_grad_output(g, 0), dy = cm_grad_incoming(g, 0);
    const cm_value zero = cm_emit_scalar_like(g, y, 0.0);
    if (p == 1)
        return dy;
    const cm_value power =
        p == 2 ? y : cm_emit(g, "Pow", y, cm_emit_scalar_like(g, y, (double)(p - 1)));
    const cm_value flat = cm_emit(g, "Equal", y, zero);
    const cm_value safe = cm_emit(g, "Where", flat, cm_emit_scalar_like(g, y, 1.0), power);
    return cm_emit(g, "Where", flat, zero, cm_emit(g, "Div", dy, safe));
}

static cm_value norm_factor(struct cm_grad *g, int64_t p)
{
    const cm_value x = cm_grad_input(g, 0);
    if (p == 2)
        return x;
    const cm_value sign = cm_emit(g, "Sign", x);
    if (p == 1)
        return sign;
    return cm_emit(
        g, "Mul", sign,
        cm_emit(g, "Pow", cm_emit(g, "Abs", x), cm_emit_scalar_like(g, x, (double)(p - 1))));
}

static enum cm_status lppool_grad(struct cm_grad *g)
{
    const struct member *member = g->node->op->arg;
    const int64_t p = cm_node_int(g->node, "p");
    cm_value weight = norm_weight(g, p);
    if (!member->global) {
        struct cm_spread spread;
        CM_TRY(cm_spread_init(g, g->node, cm_grad_input(g, 0), &spread));
        weight = cm_spread_emit(&spread, weight);
    }
    return cm_grad_set(g, 0, cm_emit(g, "Mul", norm_factor(g, p), weight));
}

CM_OP(AveragePool, .infer = cm_planes_infer, .prepare = sum_pool_prepare, .run = sum_pool_run,
      .grad = cm_pool_grad, .arg = &average);
CM_OP(GlobalAveragePool, .infer = cm_planes_infer_global, .prepare = sum_pool_prepare,
      .run = sum_pool_run, .grad = cm_pool_grad, .arg = &global_average);
CM_OP(LpPool, .infer = cm_planes_infer, .prepare = sum_pool_prepare, .run = sum_pool_run,
      .grad = lppool_grad, .arg = &lp);
CM_OP(GlobalLpPool, .infer = cm_planes_infer_global, .prepare = sum_pool_prepare,
      .run = sum_pool_run, .grad = lppool_grad, .arg = &global_lp);
