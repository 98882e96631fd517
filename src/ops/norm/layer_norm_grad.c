/* The gradients of LayerNormalization and RMSNormalization: one operator each where scale and bias
 * have one element for each that is normalized together, else nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/norm/norm_grad.h"

#include <math.h>

/* What the two differ in. */
struct norm_kind {
    bool centred; /* a mean is taken off */
};
static const struct norm_kind layer = {true}, rms = {false};

enum { DY, X, SCALE };         /* operands of the gradient operators */
enum { D_X, D_SCALE, D_BIAS }; /* their results */

static enum cm_status grad_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X);
    int axis;
    if (x->rank != CM_RANK_UNKNOWN)
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    CM_TRY(cm_infer_set(in, D_X, x));
    CM_TRY(cm_infer_set(in, D_SCALE, cm_infer_type(in, SCALE)));
    return in->n_out > D_BIAS ? cm_infer_set(in, D_BIAS, cm_infer_type(in, SCALE)) : CM_OK;
}

/* ---- Running ---- */

struct rows {
    int64_t count, size; /* rows, and elements of each */
    double epsilon;
};

static enum cm_status grad_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    struct rows *rows = cm_call_state(call, sizeof *rows);
    size_t bytes;
    int axis;
    if (!cm_shape_equal(x, &call->in[DY]->shape))
        return cm_call_fail(call, CM_BAD_MODEL, "dY and X differ in shape");
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    rows->count = cm_shape_span(x, 0, axis);
    rows->size = cm_shape_span(x, axis, x->rank);
    rows->epsilon = (double)cm_node_float(call->node, "epsilon");
    if (cm_tensor_count(call->in[SCALE]) != rows->size)
        return cm_call_fail(call, CM_BAD_MODEL, "Scale has %lld elements, needs %lld",
                            (long long)cm_tensor_count(call->in[SCALE]), (long long)rows->size);
    if (!cm_size_mul((size_t)rows->size, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axes are too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static bool centred(const struct cm_node *node)
{
    return ((const struct norm_kind *)node->op->arg)->centred;
}

/* What a row was normalized with: xhat = (x - mean) * inverse. */
struct statistics {
    double mean, inverse;
};

static struct statistics statistics_of(const struct cm_call *call, int64_t first)
{
    const struct rows *rows = call->state;
    const double n = (double)rows->size;
    double sum = 0, squares = 0;
    for (int64_t i = 0; centred(call->node) && i < rows->size; i++)
        sum += cm_tensor_real(call->in[X], first + i);
    for (int64_t i = 0; i < rows->size; i++) {
        const double off = cm_tensor_real(call->in[X], first + i) - sum / n;
        squares += off * off;
    }
    return (struct statistics){sum / n, 1 / sqrt(squares / n + rows->epsilon)};
}

/* dx = inverse * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * scale, the first mean only
 * where one was taken off; dscale is the sum of dy * xhat over rows, dbias that of dy. */
static enum cm_status grad_run(struct cm_call *call)
{
    const struct rows *rows = call->state;
    const double n = (double)rows->size;
    double *d_scale = call->scratch, *d_bias = d_scale + rows->size;
    for (int64_t i = 0; i < rows->size; i++)
        d_scale[i] = d_bias[i] = 0;
    for (int64_t row = 0; row < rows->count; row++) {
        const int64_t first = row * rows->size;
        const struct statistics s = statistics_of(call, first);
        double sum = 0, along = 0;
        for (int64_t i = 0; i < rows->size; i++) {
            const double dy = cm_tensor_real(call->in[DY], first + i);
            const double xhat = (cm_tensor_real(call->in[X], first + i) - s.mean) * s.inverse;
            d_scale[i] += dy * xhat;
            d_bias[i] += dy;
            sum += dy * cm_tensor_real(call->in[SCALE], i);
            along += dy * cm_tensor_real(call->in[SCALE], i) * xhat;
        }
        for (int64_t i = 0; call->out[D_X] && i < rows->size; i++) {
            const double xhat = (cm_tensor_real(call->in[X], first + i) - s.mean) * s.inverse;
            const double g =
                cm_tensor_real(call->in[DY], first + i) * cm_tensor_real(call->in[SCALE], i);
            cm_tensor_set_real(call->out[D_X], first + i,
                               s.inverse *
                                   (g - (centred(call->node) ? sum / n : 0) - xhat * along / n));
        }
    }
    for (int o = D_SCALE; o < call->n_out; o++)
        for (int64_t i = 0; call->out[o] && i < rows->size; i++)
            cm_tensor_set_real(call->out[o], i, (o == D_SCALE ? d_scale : d_bias)[i]);
    return CM_OK;
}

/* ---- As nodes ---- */

/* The gradients by x and, before sums over rows, by scale. */
struct norm_gradients {
    struct cm_normalized n;
    cm_value dx, d_scale;
};

static struct norm_gradients emit_gradients(struct cm_grad *g, cm_value x, cm_value dy,
                                            cm_value scale, cm_value axes, bool takes_mean,
                                            double epsilon, cm_value mean, cm_value inverse)
{
    struct norm_gradients d;
    d.n = cm_norm_forward(g, x, axes, takes_mean, epsilon, mean, inverse);
    d.dx = cm_norm_backward(g, &d.n, cm_emit(g, "Mul", dy, scale));
    d.d_scale = cm_emit(g, "Mul", dy, d.n.xhat);
    return d;
}

/* Summed over rows, as a tensor of the shape and type of scale. */
static cm_value sum_rows(struct cm_grad *g, cm_value d, cm_value scale, int axis)
{
    if (axis > 0)
        d = cm_norm_sum(g, d, cm_norm_axes(g, 0, axis, -1), false);
    d = cm_emit(g, "Reshape", d, cm_emit(g, "Shape", scale));
    return cm_norm_as(g, d, scale);
}

static enum cm_status grad_body(struct cm_body *b)
{
    struct cm_grad g = {.build = b->build}; /* the rule's own nodes, in the body */
    const cm_value x = cm_body_input(b, X), scale = cm_body_input(b, SCALE);
    const struct cm_type *type = cm_builder_type(&b->build, x);
    int axis;
    if (type->rank == CM_RANK_UNKNOWN)
        return cm_body_decline(b, "the rank of X is not known");
    if (!cm_axis_fix(cm_node_int(b->node, "axis"), type->rank, &axis))
        return cm_body_decline(b, "its axis is out of range");
    const cm_value wide = cm_norm_widen(&g, x);
    const cm_value dy = cm_norm_as(&g, cm_body_input(b, DY), wide);
    const struct norm_gradients d = emit_gradients(
        &g, wide, dy, cm_norm_as(&g, scale, wide), cm_norm_axes(&g, axis, type->rank, -1),
        centred(b->node), (double)cm_node_float(b->node, "epsilon"), 0, 0);
    const cm_value dx = cm_norm_as(&g, d.dx, x);
    const cm_value d_scale = sum_rows(&g, d.d_scale, scale, axis);
    const cm_value d_bias = cm_body_wants(b, D_BIAS) ? sum_rows(&g, dy, scale, axis) : 0;
    b->build = g.build;
    CM_TRY(b->build.status);
    CM_TRY(cm_body_return(b, D_X, dx));
    CM_TRY(cm_body_return(b, D_SCALE, d_scale));
    return d_bias ? cm_body_return(b, D_BIAS, d_bias) : CM_OK;
}

CM_OP_IN(cameo, "ai.cameo", LayerNormalizationGrad, .infer = grad_infer, .prepare = grad_prepare,
         .run = grad_run, .body = grad_body, .arg = &layer);
CM_OP_IN(cameo, "ai.cameo", RMSNormalizationGrad, .infer = grad_infer, .prepare = grad_prepare,
         .run = grad_run, .body = grad_body, .arg = &rms);

/* ---- The rule of the forward operators ---- */

/* What reaches x through the outputs Mean and InvStdDev: dmean / n - dinverse * inverse^2 * xhat /
 * n. */
static cm_value through_statistics(struct cm_grad *g, const struct cm_normalized *n, int n_outputs,
                                   cm_value x, cm_value dx)
{
    const enum cm_dtype dtype = cm_builder_type(&g->build, x)->dtype;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    for (int o = 1; o < n_outputs && !g->build.status; o++) {
        if (!g->incoming[o])
            continue;
        cm_value d =
            cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", dtype)), g->incoming[o]);
        d = cm_emit(g, "Div", d, n->count);
        if (o == 2) {
            const cm_value square = cm_emit(g, "Mul", n->inverse, n->inverse);
            d = cm_emit(g, "Neg", cm_emit(g, "Mul", cm_emit(g, "Mul", d, square), n->xhat));
        }
        dx = cm_emit(g, "Add", dx, d);
    }
    return dx;
}

/* Those that are normalized over; counted from the end they need no rank. */
static enum cm_status normalized_axes(struct cm_grad *g, int rank, cm_value *out)
{
    const int64_t first = cm_node_int(g->node, "axis");
    int axis;
    if (rank == CM_RANK_UNKNOWN && first >= 0)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of X");
    if (rank == CM_RANK_UNKNOWN && first >= -CM_MAX_RANK)
        *out = cm_norm_axes(g, (int)first, 0, 0);
    else if (rank != CM_RANK_UNKNOWN && cm_axis_fix(first, rank, &axis))
        *out = cm_norm_axes(g, axis, rank, -1);
    else
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "its axis is out of range");
    return CM_OK;
}

/* Has operand i one element for each that is normalized together, in their order? */
static bool lies_over(const struct cm_grad *g, int i)
{
    const struct cm_type *x = cm_builder_type(&g->build, cm_grad_input(g, 0)),
                         *p = cm_builder_type(&g->build, cm_grad_input(g, i));
    int axis;
    if (x->rank == CM_RANK_UNKNOWN || p->rank > x->rank ||
        !cm_axis_fix(cm_node_int(g->node, "axis"), x->rank, &axis) || p->rank < x->rank - axis)
        return false;
    for (int d = 0; d < p->rank; d++) {
        const int of_x = x->rank - p->rank + d;
        if (of_x < axis ? p->dims[d].value != 1 : !cm_dim_same(p->dims[d], x->dims[of_x]))
            return false;
    }
    return true;
}

/* One operator does when no gradient comes through the statistics; scale and bias are alike. */
static bool fits_operator(const struct cm_grad *g)
{
    const cm_value bias = cm_grad_input(g, 2);
    bool fits = lies_over(g, 1);
    for (int o = 1; o < g->n_incoming; o++)
        fits = fits && !g->incoming[o];
    if (!bias || !fits)
        return fits;
    const struct cm_type *a = cm_builder_type(&g->build, cm_grad_input(g, 1)),
                         *b = cm_builder_type(&g->build, bias);
    fits = a->rank == b->rank;
    for (int d = 0; fits && d < a->rank; d++)
        fits = cm_dim_same(a->dims[d], b->dims[d]);
    return fits;
}

static enum cm_status emit_operator(struct cm_grad *g, const struct norm_kind *kind)
{
    if (kind == &rms)
        return cm_grad_formula(
            g, "dX, d_scale = ai.cameo::RMSNormalizationGrad<axis, epsilon>(dY, X, scale)");
    return cm_grad_formula(g,
                           "dX, dScale%s ="
                           "  ai.cameo::LayerNormalizationGrad<axis, epsilon>(dY, X, Scale)",
                           cm_grad_input(g, 2) ? ", dB" : "");
}

static enum cm_status norm_grad(struct cm_grad *g, const struct norm_kind *kind)
{
    const struct cm_type *type = cm_builder_type(&g->build, cm_grad_input(g, 0));
    const int n_outputs = g->node->n_outputs; /* before more are asked for */
    cm_value axes = 0, mean = 0, inverse = 0;
    if (fits_operator(g))
        return emit_operator(g, kind);
    CM_TRY(normalized_axes(g, type->rank, &axes));
    if (kind->centred && type->dtype != CM_DOUBLE &&
        cm_node_int(g->node, "stash_type") == CM_FLOAT) {
        mean = cm_grad_extra_output(g, 1); /* the forward pass has them, as floats */
        inverse = cm_grad_extra_output(g, 2);
    }
    CM_TRY(g->build.status);
    const cm_value x = cm_norm_widen(g, cm_grad_input(g, 0));
    /* RMSNormalization's result has the type of its scale, which may be another. */
    const cm_value dy = cm_norm_as(g, cm_grad_incoming(g, 0), x);
    const struct norm_gradients d =
        emit_gradients(g, x, dy, cm_norm_as(g, cm_grad_input(g, 1), x), axes, kind->centred,
                       (double)cm_node_float(g->node, "epsilon"), mean, inverse);
    CM_TRY(g->build.status);
    CM_TRY(
        cm_norm_set(g, 0, kind->centred ? through_statistics(g, &d.n, n_outputs, x, d.dx) : d.dx));
    CM_TRY(cm_norm_set(g, 1, d.d_scale));
    return cm_grad_input(g, 2) ? cm_norm_set(g, 2, dy) : CM_OK;
}

enum cm_status cm_layer_norm_grad(struct cm_grad *g)
{
    return norm_grad(g, &layer);
}

enum cm_status cm_rms_norm_grad(struct cm_grad *g)
{
    return norm_grad(g, &rms);
}
