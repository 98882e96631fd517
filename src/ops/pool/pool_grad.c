/* The gradients of MaxPool, AveragePool and GlobalAveragePool as one operator each: from dY and X,
 * by finding maxima and counting taps again. Nothing is kept of the forward pass but X, which what
 * is before the pooling mostly needs as well. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool_grad.h"

#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/pool/planes.h"
#include "ops/pool/spread.h"
#include "tensor/line.h"

enum { DY, X }; /* operands */

/* What they differ in. */
struct pool_kind {
    const char *forward, *gradient;
    bool global, max;
};
static const struct pool_kind max = {"MaxPool", "ai.cameo::MaxPoolGradFromX", false, true};
static const struct pool_kind average = {"AveragePool", "ai.cameo::AveragePoolGrad", false, false};
static const struct pool_kind global_average = {"GlobalAveragePool",
                                                "ai.cameo::GlobalAveragePoolGrad", true, false};

static const struct pool_kind *kind_of(const struct cm_node *node)
{
    return node->op->arg;
}

/* ---- Inference ---- */

/* Of the pooling's result. */
static enum cm_status pooled_type(struct cm_infer *in, const struct cm_type *x,
                                  const struct cm_type **out)
{
    struct cm_dim *dims = CM_NEW_ARRAY(in->arena, struct cm_dim, (size_t)x->rank);
    struct cm_window window;
    if (!kind_of(in->node)->global) {
        CM_TRY(cm_window_read(in->node, x->rank - 2, NULL, &window, in->err));
        return cm_window_infer(in, &window, x, x->dims[1], out);
    }
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : CM_DIM(1);
    *out = cm_type_tensor(in->arena, x->dtype, x->rank, dims);
    return CM_OK;
}

static enum cm_status grad_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *dy = cm_infer_type(in, DY), *y;
    CM_TRY(cm_infer_set(in, 0, x));
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (x->rank < (kind_of(in->node)->global ? 2 : 3))
        return cm_infer_fail(in, "X has rank %d, needs at least %d", x->rank,
                             kind_of(in->node)->global ? 2 : 3);
    CM_TRY(pooled_type(in, x, &y));
    if (dy->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    if (dy->rank != y->rank)
        return cm_infer_fail(in, "dY has rank %d, X has %d", dy->rank, x->rank);
    for (int i = 0; i < y->rank; i++) {
        struct cm_dim both;
        if (!cm_dim_unify(y->dims[i], dy->dims[i], &both))
            return cm_infer_fail(in, "dY has %lld elements along axis %d, pooling X gives %lld",
                                 (long long)dy->dims[i].value, i, (long long)y->dims[i].value);
    }
    return CM_OK;
}

/* ---- Running ---- */

struct pool_slopes {
    struct cm_planes planes;
    bool count_pads;
};

static enum cm_status grad_prepare(struct cm_call *call)
{
    struct pool_slopes *slopes = cm_call_state(call, sizeof *slopes);
    size_t bytes;
    slopes->count_pads = cm_node_int(call->node, "count_include_pad") != 0;
    CM_TRY(cm_planes_read(call, call->in[X], kind_of(call->node)->global, &slopes->planes));
    if (slopes->planes.count == 0)
        return CM_OK;
    if (slopes->planes.count * slopes->planes.out_plane != cm_tensor_count(call->in[DY]))
        return cm_call_fail(call, CM_BAD_MODEL, "dY does not have the shape that pooling X gives");
    if (!cm_size_mul((size_t)slopes->planes.in_plane, sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its planes are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static int64_t place_of(const struct cm_planes *planes, const int64_t *tap)
{
    int64_t place = 0;
    for (int i = 0; i < planes->window.rank; i++)
        place += tap[i] * planes->x_strides[i];
    return place;
}

/* The first of the greatest; NaN wins. */
static void spread_to_greatest(const struct cm_call *call, int64_t plane, const int64_t *low,
                               const int64_t *high, double dy, double *sums)
{
    const struct pool_slopes *slopes = call->state;
    const struct cm_planes *planes = &slopes->planes;
    int64_t tap[CM_MAX_RANK], where = -1;
    double best = 0;
    memcpy(tap, low, (size_t)planes->window.rank * sizeof tap[0]);
    do {
        const int64_t place = place_of(planes, tap);
        const double v = cm_tensor_real(call->in[X], plane * planes->in_plane + place);
        if (where < 0 || v > best || (v != v && best == best)) {
            best = v;
            where = place;
        }
    } while (cm_planes_next_tap(planes, planes->window.rank, tap, low, high));
    sums[where] += dy;
}

static void spread_to_all(const struct cm_planes *planes, const int64_t *low, const int64_t *high,
                          double dy, double *sums)
{
    int64_t tap[CM_MAX_RANK];
    memcpy(tap, low, (size_t)planes->window.rank * sizeof tap[0]);
    do {
        sums[place_of(planes, tap)] += dy;
    } while (cm_planes_next_tap(planes, planes->window.rank, tap, low, high));
}

static enum cm_status grad_run(struct cm_call *call)
{
    const struct pool_slopes *slopes = call->state;
    const struct cm_planes *planes = &slopes->planes;
    double *sums = call->scratch;
    for (int64_t p = 0; p < planes->count; p++) {
        int64_t at[CM_MAX_RANK] = {0}, low[CM_MAX_RANK], high[CM_MAX_RANK];
        memset(sums, 0, (size_t)planes->in_plane * sizeof *sums);
        for (int64_t o = 0; o < planes->out_plane; o++) {
            const double dy = cm_tensor_real(call->in[DY], p * planes->out_plane + o);
            const bool inside = cm_planes_clip(planes, at, low, high);
            if (inside && kind_of(call->node)->max)
                spread_to_greatest(call, p, low, high, dy, sums);
            else if (inside)
                spread_to_all(planes, low, high,
                              dy / cm_planes_divisor(planes, slopes->count_pads, at), sums);
            cm_planes_next_window(planes, at);
        }
        cm_line_save(cm_line_at(call->out[0], p * planes->in_plane), 1, planes->in_plane, CM_DOUBLE,
                     sums);
    }
    return CM_OK;
}

/* ---- As nodes ---- */

static enum cm_status max_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, X);
    cm_value both[2];
    cm_build(&b->build, &(struct cm_emission){.op = "MaxPool",
                                              CM_INPUTS(x),
                                              .attributes = b->node->attributes,
                                              .n_attributes = b->node->n_attributes,
                                              .n_outputs = 2,
                                              .outputs = both});
    CM_TRY(b->build.status);
    return cm_body_return(
        b, 0,
        cm_emit(b, "ai.cameo::MaxPoolGrad", cm_body_input(b, DY), both[1], cm_emit(b, "Shape", x)));
}

static enum cm_status average_body(struct cm_body *b)
{
    struct cm_grad g = {.build = b->build}; /* nodes of a rule, in the body */
    struct cm_spread spread;
    const cm_value dy = cm_body_input(b, DY);
    CM_TRY(cm_spread_init(&g, b->node, cm_body_input(b, X), &spread));
    const cm_value shares = cm_emit(&g, "Div", dy, cm_spread_divisor(&spread, dy));
    const cm_value dx = cm_spread_emit(&spread, shares);
    b->build = g.build;
    return cm_body_return(b, 0, dx);
}

CM_BODY(global_average_body, "ones = Size(X) / Size(dY); share = dY / CastLike(ones, dY);"
                             "dX = Expand(share, Shape(X))")

#define POOL_GRAD(kind)                                                                            \
    .infer = grad_infer, .prepare = grad_prepare, .run = grad_run, .body = kind##_body, .arg = &kind

CM_OP_IN(cameo, "ai.cameo", MaxPoolGradFromX, POOL_GRAD(max));
CM_OP_IN(cameo, "ai.cameo", AveragePoolGrad, POOL_GRAD(average));
CM_OP_IN(cameo, "ai.cameo", GlobalAveragePoolGrad, POOL_GRAD(global_average));

/* ---- The rule of the forward operators ---- */

enum cm_status cm_pool_grad(struct cm_grad *g)
{
    static const struct pool_kind *const kinds[] = {&max, &average, &global_average};
    const char *gradient = NULL;
    struct cm_attribute_proto *attributes =
        CM_NEW_ARRAY(cm_builder_arena(&g->build), struct cm_attribute_proto, g->node->n_attributes);
    size_t n = 0;
    for (size_t i = 0; i < CM_COUNT(kinds); i++)
        if (cm_str_is(g->node->op_type, kinds[i]->forward))
            gradient = kinds[i]->gradient;
    for (size_t i = 0; i < g->node->n_attributes; i++) /* all but how indices are counted */
        if (!cm_str_is(g->node->attributes[i].name, "storage_order"))
            attributes[n++] = g->node->attributes[i];
    const cm_value dx = cm_build(
        &g->build, &(struct cm_emission){.op = gradient,
                                         CM_INPUTS(cm_grad_incoming(g, 0), cm_grad_input(g, 0)),
                                         .attributes = attributes,
                                         .n_attributes = n});
    return cm_grad_set(g, 0, dx);
}
