/* AveragePool and LpPool and their global forms: sums over windows, turned into a mean or a norm.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/planes.h"
#include "ops/pool/pool_grad.h"
#include "ops/pool/spread.h"

#include <math.h>

struct sum_pool;

/* What becomes of the sum of the terms of one window. */
typedef double finish_fn(const struct sum_pool *pool, double sum, const int64_t *at);

struct sum_pool {
    struct cm_planes planes;
    bool count_pads; /* padding counts in the divisor of the mean */
    int64_t p;       /* of the norm; 0: a mean */
    finish_fn *finish;
};

static double term(const struct sum_pool *pool, double v)
{
    switch (pool->p) {
    case 0:
        return v;
    case 1:
        return fabs(v);
    case 2:
        return v * v;
    default:
        return pow(fabs(v), (double)pool->p);
    }
}

#define T         float
#define FOR(name) float_##name
#include "ops/pool/sum_plane.inc"
#define T         double
#define FOR(name) double_##name
#include "ops/pool/sum_plane.inc"

static cm_plane_fn *const planes_of[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = float_plane,
    [CM_DOUBLE] = double_plane,
};

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
    return pow(sum, 1 / (double)pool->p);
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
    pool->p = 0;
    pool->finish = finish_mean;
    pool->count_pads = cm_node_int(call->node, "count_include_pad") != 0;
    if (member->norm) {
        const int64_t p = cm_node_int(call->node, "p");
        if (p < 1)
            return cm_call_fail(call, CM_BAD_MODEL, "p is %lld, must be at least 1", (long long)p);
        pool->p = p;
        pool->finish = p == 1 ? finish_sum : p == 2 ? finish_square : finish_power;
    }
    return cm_planes_plan(call, member->global, &pool->planes);
}

static enum cm_status sum_pool_run(struct cm_call *call)
{
    const struct sum_pool *pool = call->state;
    return cm_planes_run(call, &pool->planes, planes_of);
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
