/* BatchNormalization: each channel shifted and scaled, by given statistics or by those of the
 * batch. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/norm/norm_grad.h"
#include "tensor/line.h"

#include <math.h>

struct cm_dim cm_batch_norm_channels(const struct cm_type *x)
{
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_DIM_ANY;
    return x->rank > 1 ? x->dims[1] : CM_DIM(1);
}

static enum cm_status batch_norm_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim channels = cm_batch_norm_channels(x);
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
        CM_TRY(cm_infer_rank(in, i, 1, 1));
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

static const struct cm_training_form batch_norm_training = {.mode_attribute = "training_mode",
                                                            .statistics_input = 3,
                                                            .statistics_output = 1,
                                                            .n_statistics = 2};

CM_OP(BatchNormalization, .infer = batch_norm_infer, .prepare = batch_norm_prepare,
      .run = batch_norm_run, .grad = cm_batch_norm_grad, .cost.work = cm_work_linear,
      .training = &batch_norm_training, .layer.weights = CM_OPERAND(1) | CM_OPERAND(2),
      .layer.entry = CM_ENTERS_AFTER_NORM);
