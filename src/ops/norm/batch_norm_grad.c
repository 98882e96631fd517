/* The gradient of BatchNormalization: one operator where the statistics are those of the batch,
 * else nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/norm/norm_grad.h"
#include "tensor/line.h"

#include <math.h>

/* ---- ai.cameo::BatchNormalizationGrad ---- */

enum { DY, X, SCALE };         /* operands */
enum { D_X, D_SCALE, D_BIAS }; /* results */

static enum cm_status grad_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, X), *scale = cm_infer_type(in, SCALE);
    struct cm_dim channels = cm_batch_norm_channels(x);
    const struct cm_dim before = channels;
    if (x->rank == 0)
        return cm_infer_fail(in, "X is a scalar, needs a batch axis");
    CM_TRY(cm_infer_rank(in, SCALE, 1, 1));
    if (scale->rank == 1 && !cm_dim_unify(before, scale->dims[0], &channels))
        return cm_infer_fail(in, "Scale has %lld numbers, there are %lld channels",
                             (long long)scale->dims[0].value, (long long)before.value);
    CM_TRY(cm_infer_set(in, D_X, x));
    CM_TRY(cm_infer_set_tensor(in, D_SCALE, scale->dtype, 1, &channels));
    return cm_infer_set_tensor(in, D_BIAS, scale->dtype, 1, &channels);
}

struct batch_slopes {
    int64_t images, channels, area;
    double epsilon;
};

static enum cm_status grad_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[X]->shape;
    struct batch_slopes *batch = cm_call_state(call, sizeof *batch);
    if (!cm_shape_equal(x, &call->in[DY]->shape))
        return cm_call_fail(call, CM_BAD_MODEL, "dY and X differ in shape");
    *batch = (struct batch_slopes){.images = x->dims[0],
                                   .channels = x->rank > 1 ? x->dims[1] : 1,
                                   .area = x->rank > 2 ? cm_shape_span(x, 2, x->rank) : 1,
                                   .epsilon = (double)cm_node_float(call->node, "epsilon")};
    if (batch->area == 0)
        batch->images = 0; /* images without elements, however many, are nothing to walk over */
    return CM_OK;
}

static void put(const struct cm_call *call, int o, int64_t at, double value)
{
    if (call->out[o])
        cm_line_store(cm_line_at(call->out[o], at), value);
}

/* One channel: dx = factor * (dy - mean(dy) - xhat * mean(dy * xhat)), factor = inverse * scale. */
static void turn_channel(struct cm_call *call, const struct batch_slopes *batch, int64_t channel)
{
    const struct cm_tensor *x = call->in[X], *dy = call->in[DY];
    const double count = (double)(batch->images * batch->area);
    double sum = 0, squares = 0, of_dy = 0, along = 0;
    for (int64_t i = 0; i < batch->images; i++) {
        const int64_t at = (i * batch->channels + channel) * batch->area;
        sum += cm_line_sum(cm_line_at(x, at), batch->area);
        of_dy += cm_line_sum(cm_line_at(dy, at), batch->area);
    }
    const double mean = sum / count;
    for (int64_t i = 0; i < batch->images; i++)
        squares += cm_line_square_sum(cm_line_at(x, (i * batch->channels + channel) * batch->area),
                                      batch->area, mean);
    const double inverse = 1 / sqrt(squares / count + batch->epsilon);
    for (int64_t i = 0; i < batch->images; i++)
        for (int64_t k = 0; k < batch->area; k++) {
            const int64_t at = (i * batch->channels + channel) * batch->area + k;
            along += cm_tensor_real(dy, at) * (cm_tensor_real(x, at) - mean) * inverse;
        }
    put(call, D_SCALE, channel, along);
    put(call, D_BIAS, channel, of_dy);
    const double factor = cm_tensor_real(call->in[SCALE], channel) * inverse;
    for (int64_t i = 0; i < batch->images; i++)
        for (int64_t k = 0; k < batch->area; k++) {
            const int64_t at = (i * batch->channels + channel) * batch->area + k;
            const double xhat = (cm_tensor_real(x, at) - mean) * inverse;
            put(call, D_X, at,
                factor * (cm_tensor_real(dy, at) - of_dy / count - xhat * along / count));
        }
}

static enum cm_status grad_run(struct cm_call *call)
{
    const struct batch_slopes *batch = call->state;
    for (int64_t c = 0; c < batch->channels; c++)
        turn_channel(call, batch, c);
    return CM_OK;
}

/* ---- As nodes ---- */

/* Of unknown rank all spatial axes are laid in one, and its gradient laid out again. */
static cm_value in_one_axis(struct cm_grad *g, int rank, cm_value x)
{
    return rank == CM_RANK_UNKNOWN ? cm_emit(g, "Reshape", x, cm_emit_int64s(g, 0, 0, -1)) : x;
}

/* dx in the shape and type of x. */
static cm_value as_image(struct cm_grad *g, cm_value dx, cm_value x)
{
    if (cm_builder_type(&g->build, x)->rank == CM_RANK_UNKNOWN)
        dx = cm_emit(g, "Reshape", dx, cm_emit(g, "Shape", x));
    return cm_norm_as(g, dx, x);
}

/* The operands of a gradient, wide and with a rank. */
struct batch_values {
    cm_value x, dy, scale, axes;
    int rank, after; /* axes behind the channels; below 0: one channel, its sums keep their axis */
};

static struct batch_values widen(struct cm_grad *g, cm_value x, cm_value dy, cm_value scale)
{
    const int rank = cm_builder_type(&g->build, x)->rank;
    struct batch_values v = {.rank = rank == CM_RANK_UNKNOWN ? 3 : rank};
    v.x = cm_norm_widen(g, in_one_axis(g, rank, x));
    v.dy = cm_norm_as(g, in_one_axis(g, rank, dy), v.x);
    v.scale = cm_norm_as(g, scale, v.x);
    v.after = v.rank - 2;
    v.axes = cm_norm_axes(g, 0, v.rank, v.rank > 1 ? 1 : -1);
    return v;
}

static enum cm_status grad_body(struct cm_body *b)
{
    struct cm_grad g = {.build = b->build}; /* the rule's own nodes, in the body */
    const cm_value x = cm_body_input(b, X), scale = cm_body_input(b, SCALE);
    const struct batch_values v = widen(&g, x, cm_body_input(b, DY), scale);
    const double epsilon = (double)cm_node_float(b->node, "epsilon");
    const struct cm_normalized n = cm_norm_forward(&g, v.x, v.axes, true, epsilon, 0, 0);
    const cm_value dxhat = cm_emit(&g, "Mul", v.dy, cm_norm_per_channel(&g, v.scale, v.after));
    const cm_value dx = as_image(&g, cm_norm_backward(&g, &n, dxhat), x);
    const cm_value products = cm_emit(&g, "Mul", v.dy, n.xhat);
    const cm_value d_scale = cm_norm_as(&g, cm_norm_sum(&g, products, v.axes, v.rank == 1), scale);
    const cm_value d_bias = cm_norm_as(&g, cm_norm_sum(&g, v.dy, v.axes, v.rank == 1), scale);
    b->build = g.build;
    CM_TRY(cm_body_return(b, D_X, dx));
    CM_TRY(cm_body_return(b, D_SCALE, d_scale));
    return cm_body_return(b, D_BIAS, d_bias);
}

CM_OP_IN(cameo, "ai.cameo", BatchNormalizationGrad, .infer = grad_infer, .prepare = grad_prepare,
         .run = grad_run, .body = grad_body, .cost.work = cm_work_linear);

/* ---- The rule of the forward operator ---- */

/* With fixed statistics: dmean = -inverse * scale * sum(dy), dvar = -inverse^2 / 2 * scale * sum(dy
 * * xhat). */
static enum cm_status fixed_grad(struct cm_grad *g)
{
    const struct batch_values v =
        widen(g, cm_grad_input(g, 0), cm_grad_incoming(g, 0), cm_grad_input(g, 1));
    const cm_value mean = cm_norm_as(g, cm_grad_input(g, 3), v.x);
    const cm_value variance = cm_norm_as(g, cm_grad_input(g, 4), v.x);
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&g->build),
        "x, dy, scale, mean, variance, axes: after = %d; keep = %d;"
        "channel(t) = after ? Unsqueeze(t, [1 to after]) : t;"
        "total(t) = ReduceSum<keepdims=keep>(t, axes);"
        "inverse = Reciprocal(Sqrt(variance + epsilon)); slope = scale * inverse;"
        "xhat = (x - channel(mean)) * channel(inverse); sum = total(dy); dscale = total(dy * xhat);"
        "half = -0.5 * (inverse * inverse); dx = dy * channel(slope);"
        "dmean = -(slope * sum); dvar = half * dscale * scale -> dx, dscale, sum, dmean, dvar",
        v.after > 0 ? v.after : 0, v.after < 0 /* of rank 1 */);
    cm_value d[5];
    cm_emit_formulas(g, d, cm_str_text(text), v.x, v.dy, v.scale, mean, variance, v.axes);
    CM_TRY(cm_grad_set(g, 0, as_image(g, d[0], cm_grad_input(g, 0))));
    for (int i = 1; i < 5; i++)
        CM_TRY(cm_norm_set(g, i, d[i]));
    return CM_OK;
}

enum cm_status cm_batch_norm_grad(struct cm_grad *g)
{
    if (cm_node_int(g->node, "training_mode") == 0)
        return fixed_grad(g);
    return cm_grad_formula(
        g, "dX, d_scale, dB = ai.cameo::BatchNormalizationGrad<epsilon>(dY, X, scale)");
}
