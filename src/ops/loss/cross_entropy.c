/* SoftmaxCrossEntropyLoss: the negative log-likelihood of the softmax of raw scores. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/line.h"
#include "ops/loss/nll.h"

#include <math.h>

static enum cm_status cross_entropy_prepare(struct cm_call *call)
{
    struct cm_loss *loss = cm_call_state(call, sizeof *loss);
    size_t bytes;
    cm_loss_read(call, loss);
    if (!cm_size_mul((size_t)loss->classes, sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many classes");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Also writes log_prob for the position, when that is wanted. */
static double softmax_log(const struct cm_call *call, const struct cm_loss *loss, int64_t image,
                          int64_t i, int64_t c)
{
    struct cm_tensor *log_prob = call->n_out > 1 ? call->out[1] : NULL;
    const int64_t at = image * loss->classes * loss->area + i;
    double *line = call->scratch;
    if (c < 0 && !log_prob)
        return 0;
    cm_line_load(cm_line_at(call->in[0], at), loss->area, loss->classes, CM_DOUBLE, line);
    double most = line[0], sum = 0;
    for (int64_t k = 1; k < loss->classes; k++)
        most = line[k] > most ? line[k] : most;
    for (int64_t k = 0; k < loss->classes; k++)
        sum += exp(line[k] - most);
    const double off = most + log(sum);
    for (int64_t k = 0; k < loss->classes; k++)
        line[k] -= off;
    if (log_prob)
        cm_line_save(cm_line_at(log_prob, at), loss->area, loss->classes, CM_DOUBLE, line);
    return c < 0 ? 0 : -line[c];
}

static enum cm_status cross_entropy_run(struct cm_call *call)
{
    const struct cm_loss *loss = call->state;
    if (loss->classes == 0 && loss->images * loss->area > 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "its scores have no classes");
    return cm_loss_run(call, loss, softmax_log);
}

/* dscores = slope * (softmax - chosen), plus what comes through log_prob: d - softmax * sum(d). */
static enum cm_status cross_entropy_grad(struct cm_grad *g)
{
    const cm_value through_log_prob = g->node->n_outputs > 1 ? g->incoming[1] : 0;
    const cm_value log_prob = cm_grad_extra_output(g, 1);
    struct cm_arena *arena = cm_builder_arena(&g->build);
    cm_value slopes, chosen;
    CM_TRY(g->build.status);
    CM_TRY(cm_loss_slopes(g, &slopes, &chosen));
    const enum cm_dtype wide = cm_builder_type(&g->build, slopes)->dtype;
    const struct cm_attribute_proto to = cm_attr_int(arena, "to", wide);
    const cm_value part = cm_emit(g, "Exp", cm_emit_with(g, "Cast", CM_ATTRIBUTES(to), log_prob));
    const cm_value hit = cm_emit(g, "Where", chosen, slopes, cm_emit_scalar(g, wide, 0));
    cm_value gradient = cm_emit(g, "Sub", cm_emit(g, "Mul", part, slopes), hit);
    if (through_log_prob) {
        const cm_value d = cm_emit_with(g, "Cast", CM_ATTRIBUTES(to), through_log_prob);
        const cm_value sum = cm_emit(g, "ReduceSum", d, cm_emit_int64s(g, 1));
        gradient = cm_emit(g, "Add", gradient, cm_emit(g, "Sub", d, cm_emit(g, "Mul", part, sum)));
    }
    return cm_loss_set(g, gradient);
}

static enum cm_status cross_entropy_body(struct cm_body *b)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const cm_value log_prob = cm_emit_with(
        b, "LogSoftmax", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), cm_body_input(b, 0));
    const cm_value inputs[] = {log_prob, cm_body_input(b, 1), cm_body_input(b, 2)};
    const bool ignores = cm_node_has_attr(b->node, "ignore_index");
    const struct cm_attribute_proto attributes[] = {
        cm_attr_str(arena, "reduction", cm_node_str(b->node, "reduction")),
        cm_attr_int(arena, "ignore_index", cm_node_int(b->node, "ignore_index"))};
    const cm_value loss =
        cm_build(&b->build, &(struct cm_emission){.op = "NegativeLogLikelihoodLoss",
                                                  .inputs = inputs,
                                                  .n_inputs = inputs[2] ? 3 : 2,
                                                  .attributes = attributes,
                                                  .n_attributes = ignores ? 2 : 1});
    CM_TRY(cm_body_return(b, 0, loss));
    return cm_body_return(b, 1, log_prob);
}

CM_OP(SoftmaxCrossEntropyLoss, .infer = cm_loss_infer, .prepare = cross_entropy_prepare,
      .run = cross_entropy_run, .grad = cross_entropy_grad, .body = cross_entropy_body,
      .class_labels = &cm_loss_labels);
