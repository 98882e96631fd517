/* BatchNormalization: each channel shifted and scaled, by given statistics or by those of the
 * batch. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/common/line.h"
#include "ops/norm/norm_grad.h"

#include <math.h>

/* A batch of single numbers has one channel. */
static struct cm_dim channels_of(const struct cm_type *x)
{
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_DIM_ANY;
    return x->rank > 1 ? x->dims[1] : CM_DIM(1);
}

static enum cm_status batch_norm_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim channels = channels_of(x);
    const bool training = cm_node_int(in->node, "training_mode") != 0;
    if (x->rank == 0)
        return cm_infer_fail(in, "input 0 is a scalar, needs a batch axis");
    if (!training && in->n_out > 1)
        return cm_infer_fail(in, "it has %d outputs, which needs training_mode", in->n_out);
    for (int i = 1; i < 5; i++) {
        const struct cm_type *p = cm_infer_type(in, i);
        const struct cm_dim before = channels;
        if (p->rank == CM_RANK_UNKNOWN)
            continue;
        if (p->rank != 1)
            return cm_infer_fail(in, "input %d has rank %d, needs 1", i, p->rank);
        if (!cm_dim_unify(before, p->dims[0], &channels))
            return cm_infer_fail(in, "input %d has %lld numbers, there are %lld channels", i,
                                 (long long)p->dims[0].value, (long long)before.value);
    }
    CM_TRY(cm_infer_set(in, 0, x));
    CM_TRY(cm_infer_set_tensor(in, 1, cm_infer_type(in, 3)->dtype, 1, &channels));
    return cm_infer_set_tensor(in, 2, cm_infer_type(in, 3)->dtype, 1, &channels);
}

struct batch {
    int64_t images, channels, area;
    double epsilon, momentum;
    bool training;
};

static enum cm_status batch_norm_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct batch *batch = cm_call_state(call, sizeof *batch);
    *batch = (struct batch){.images = x->dims[0],
                            .channels = x->rank > 1 ? x->dims[1] : 1,
                            .area = x->rank > 2 ? cm_shape_span(x, 2, x->rank) : 1,
                            .epsilon = (double)cm_node_float(call->node, "epsilon"),
                            .momentum = (double)cm_node_float(call->node, "momentum"),
                            .training = cm_node_int(call->node, "training_mode") != 0};
    if (batch->area == 0)
        batch->images = 0; /* images without elements, however many, are nothing to walk over */
    return CM_OK;
}

/* Mean and population variance of one channel over all images. */
static void statistics(const struct batch *batch, const struct cm_tensor *x, int64_t channel,
                       double *mean, double *variance)
{
    const double count = (double)(batch->images * batch->area);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < batch->images; i++)
        sum +=
            cm_line_sum(cm_line_at(x, (i * batch->channels + channel) * batch->area), batch->area);
    *mean = sum / count;
    for (int64_t i = 0; i < batch->images; i++)
        squares += cm_line_square_sum(cm_line_at(x, (i * batch->channels + channel) * batch->area),
                                      batch->area, *mean);
    *variance = squares / count;
}

/* running = running * momentum + batch * (1 - momentum) */
static void update(const struct cm_call *call, int o, int i, int64_t channel, double value)
{
    const struct batch *batch = call->state;
    if (o >= call->n_out || !call->out[o])
        return;
    const double before = cm_tensor_real(call->in[i], channel);
    cm_line_store(cm_line_at(call->out[o], channel),
                  before * batch->momentum + value * (1 - batch->momentum));
}

static enum cm_status batch_norm_run(struct cm_call *call)
{
    const struct batch *batch = call->state;
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    for (int64_t c = 0; c < batch->channels; c++) {
        double mean = cm_tensor_real(call->in[3], c), variance = cm_tensor_real(call->in[4], c);
        if (batch->training) {
            statistics(batch, x, c, &mean, &variance);
            update(call, 1, 3, c, mean);
            update(call, 2, 4, c, variance);
        }
        const double factor = cm_tensor_real(call->in[1], c) / sqrt(variance + batch->epsilon);
        for (int64_t i = 0; y && i < batch->images; i++) {
            const int64_t at = (i * batch->channels + c) * batch->area;
            cm_line_affine(cm_line_at(x, at), cm_line_at(y, at), batch->area, mean, factor,
                           cm_tensor_real(call->in[2], c));
        }
    }
    return CM_OK;
}

/* Of unknown rank all spatial axes are laid in one, and its gradient laid out again. */
static cm_value in_one_axis(struct cm_grad *g, cm_value x)
{
    const int rank = cm_builder_type(&g->build, cm_grad_input(g, 0))->rank;
    return rank == CM_RANK_UNKNOWN ? cm_emit(g, "Reshape", x, cm_emit_int64s(g, 0, 0, -1)) : x;
}

static enum cm_status set_image(struct cm_grad *g, cm_value dx)
{
    const cm_value x = cm_grad_input(g, 0);
    if (cm_builder_type(&g->build, x)->rank == CM_RANK_UNKNOWN)
        dx = cm_emit(g, "Reshape", dx, cm_emit(g, "Shape", x));
    return cm_norm_set(g, 0, dx);
}

/* With fixed statistics: dmean = -inverse * scale * sum(dy), dvar = -inverse^2 / 2 * scale * sum(dy
 * * xhat). */
static enum cm_status fixed_grad(struct cm_grad *g, cm_value dy, cm_value x, cm_value scale,
                                 cm_value axes, int after)
{
    const bool keep = after < 0; /* of rank 1 */
    const cm_value mean = cm_norm_as(g, cm_grad_input(g, 3), x);
    const cm_value variance = cm_norm_as(g, cm_grad_input(g, 4), x);
    const double epsilon = (double)cm_node_float(g->node, "epsilon");
    const cm_value spread = cm_emit(g, "Add", variance, cm_emit_scalar_like(g, variance, epsilon));
    const cm_value inverse = cm_emit(g, "Reciprocal", cm_emit(g, "Sqrt", spread));
    const cm_value slope = cm_emit(g, "Mul", scale, inverse);
    const cm_value off = cm_emit(g, "Sub", x, cm_norm_per_channel(g, mean, after));
    const cm_value xhat = cm_emit(g, "Mul", off, cm_norm_per_channel(g, inverse, after));
    const cm_value sum = cm_norm_sum(g, dy, axes, keep);
    const cm_value dscale = cm_norm_sum(g, cm_emit(g, "Mul", dy, xhat), axes, keep);
    const cm_value square = cm_emit(g, "Mul", inverse, inverse);
    const cm_value half = cm_emit(g, "Mul", cm_emit_scalar_like(g, inverse, -0.5), square);

    CM_TRY(set_image(g, cm_emit(g, "Mul", dy, cm_norm_per_channel(g, slope, after))));
    CM_TRY(cm_norm_set(g, 1, dscale));
    CM_TRY(cm_norm_set(g, 2, sum));
    CM_TRY(cm_norm_set(g, 3, cm_emit(g, "Neg", cm_emit(g, "Mul", slope, sum))));
    return cm_norm_set(g, 4, cm_emit(g, "Mul", cm_emit(g, "Mul", half, dscale), scale));
}

static enum cm_status batch_norm_grad(struct cm_grad *g)
{
    const int known = cm_builder_type(&g->build, cm_grad_input(g, 0))->rank;
    const int rank = known == CM_RANK_UNKNOWN ? 3 : known;
    const cm_value x = cm_norm_widen(g, in_one_axis(g, cm_grad_input(g, 0)));
    const cm_value dy = cm_norm_widen(g, in_one_axis(g, cm_grad_incoming(g, 0)));
    const cm_value scale = cm_norm_as(g, cm_grad_input(g, 1), x);
    const int after = rank - 2; /* below 0: one channel, and its sums keep their axis */
    const cm_value axes = cm_norm_axes(g, 0, rank, rank > 1 ? 1 : -1);
    if (cm_node_int(g->node, "training_mode") == 0)
        return fixed_grad(g, dy, x, scale, axes, after);
    const double epsilon = (double)cm_node_float(g->node, "epsilon");
    const struct cm_normalized n = cm_norm_forward(g, x, axes, true, epsilon, 0, 0);
    const cm_value dxhat = cm_emit(g, "Mul", dy, cm_norm_per_channel(g, scale, after));
    CM_TRY(set_image(g, cm_norm_backward(g, &n, dxhat)));
    CM_TRY(cm_norm_set(g, 1, cm_norm_sum(g, cm_emit(g, "Mul", dy, n.xhat), axes, rank == 1)));
    return cm_norm_set(g, 2, cm_norm_sum(g, dy, axes, rank == 1));
}

static const struct cm_training_form batch_norm_training = {.mode_attribute = "training_mode",
                                                            .statistics_input = 3,
                                                            .statistics_output = 1,
                                                            .n_statistics = 2};

CM_OP(BatchNormalization, .infer = batch_norm_infer, .prepare = batch_norm_prepare,
      .run = batch_norm_run, .grad = batch_norm_grad, .work = cm_work_linear,
      .training = &batch_norm_training, .weights = CM_OPERAND(1) | CM_OPERAND(2),
      .entry = CM_ENTERS_AFTER_NORM);
