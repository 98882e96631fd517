/* SoftmaxCrossEntropyLoss: the negative log-likelihood of the softmax of raw scores. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/loss/nll.h"
#include "tensor/line.h"

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

/* ---- The gradient: one operator, and nodes for what comes through log_prob ---- */

enum { D_LOSS, LOG_PROB, LABELS, WEIGHTS }; /* operands of SoftmaxCrossEntropyLossGrad */

static enum cm_status loss_grad_infer(struct cm_infer *in)
{
    const struct cm_type *log_prob = cm_infer_type(in, LOG_PROB);
    CM_TRY(cm_infer_rank(in, LOG_PROB, 2, CM_MAX_RANK));
    return cm_infer_set(in, 0, log_prob);
}

static enum cm_status loss_grad_prepare(struct cm_call *call)
{
    struct cm_loss *loss = cm_call_state(call, sizeof *loss);
    const struct cm_shape *x = &call->in[LOG_PROB]->shape;
    *loss = (struct cm_loss){.images = x->dims[0],
                             .classes = x->dims[1],
                             .area = cm_shape_span(x, 2, x->rank),
                             .ignores = cm_node_has_attr(call->node, "ignore_index"),
                             .ignored = cm_node_int(call->node, "ignore_index")};
    const int64_t positions = loss->images * loss->area;
    if (!cm_loss_reduction(call->node, &loss->reduction))
        return cm_call_fail(call, CM_BAD_MODEL,
                            "attribute 'reduction' is not 'none', 'sum' or 'mean'");
    if (cm_tensor_count(call->in[LABELS]) != positions)
        return cm_call_fail(call, CM_BAD_MODEL, "its operands differ in shape");
    if (call->n_in > WEIGHTS && call->in[WEIGHTS] &&
        cm_tensor_count(call->in[WEIGHTS]) != loss->classes)
        return cm_call_fail(call, CM_BAD_MODEL, "it has %lld weights for %lld classes",
                            (long long)cm_tensor_count(call->in[WEIGHTS]),
                            (long long)loss->classes);
    if (cm_tensor_count(call->in[D_LOSS]) != (loss->reduction == CM_REDUCE_NONE ? positions : 1))
        return cm_call_fail(call, CM_BAD_MODEL, "dLoss does not have the shape of the loss");
    return CM_OK;
}

/* The weight of a position, and its class: -1 where it is ignored. */
static double weight_at(const struct cm_call *call, const struct cm_loss *loss, int64_t at,
                        int64_t *class)
{
    const struct cm_tensor *weights = call->n_in > WEIGHTS ? call->in[WEIGHTS] : NULL;
    *class = cm_tensor_int(call->in[LABELS], at);
    if (loss->ignores && *class == loss->ignored)
        *class = -1;
    return *class < 0 ? 0 : weights ? cm_tensor_real(weights, *class) : 1;
}

/* dscores = slope * (softmax - chosen), the slope being that of the loss of a position. */
static enum cm_status loss_grad_run(struct cm_call *call)
{
    const struct cm_loss *loss = call->state;
    const int64_t positions = loss->images * loss->area;
    double total = 0;
    int64_t class;
    for (int64_t at = 0; at < positions; at++) {
        const int64_t c = cm_tensor_int(call->in[LABELS], at);
        if ((c < 0 || c >= loss->classes) && !(loss->ignores && c == loss->ignored))
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "class %lld at position %lld is outside the %lld classes",
                                (long long)c, (long long)at, (long long)loss->classes);
        total += weight_at(call, loss, at, &class);
    }
    for (int64_t at = 0; at < positions; at++) {
        const double weight = weight_at(call, loss, at, &class);
        const double d_loss =
            cm_tensor_real(call->in[D_LOSS], loss->reduction == CM_REDUCE_NONE ? at : 0);
        const double slope =
            class < 0 ? 0 : d_loss * weight / (loss->reduction == CM_REDUCE_MEAN ? total : 1);
        for (int64_t c = 0; c < loss->classes; c++) {
            const int64_t i = (at / loss->area * loss->classes + c) * loss->area + at % loss->area;
            const double chance = exp(cm_tensor_real(call->in[LOG_PROB], i));
            cm_tensor_set_real(call->out[0], i, slope == 0 ? 0 : slope * (chance - (c == class)));
        }
    }
    return CM_OK;
}

static enum cm_status loss_grad_body(struct cm_body *b)
{
    enum cm_loss_reduction reduction;
    if (!cm_loss_reduction(b->node, &reduction))
        return cm_builder_fail(&b->build, CM_BAD_MODEL, "its reduction is not known");
    return cm_body_formula(
        b,
        CM_LOSS_SLOPES("dLoss", "log_prob", "labels",
                       "weights") "p = Exp(wide(log_prob)); hit = Where(chosen, slopes, wide(0));"
                                  "dScores = cast(p * slopes - hit, log_prob)");
}

CM_OP_IN(cameo, "ai.cameo", SoftmaxCrossEntropyLossGrad, .infer = loss_grad_infer,
         .prepare = loss_grad_prepare, .run = loss_grad_run, .body = loss_grad_body,
         .cost.work = cm_work_linear);

/* The operator, plus what comes through log_prob: the gradient of a LogSoftmax. */
static enum cm_status cross_entropy_grad(struct cm_grad *g)
{
    const cm_value through_log_prob = g->node->n_outputs > 1 ? g->incoming[1] : 0;
    return cm_grad_set(
        g, 0,
        cm_emit_formula(
            g,
            "log_prob, d_log_prob, labels, d_loss, weights:"
            "d = ai.cameo::SoftmaxCrossEntropyLossGrad<reduction, ignore_index?>(d_loss, log_prob,"
            "                                                                    labels, weights);"
            "d + (d_log_prob ? ai.cameo::LogSoftmaxGrad<axis=1>(d_log_prob, log_prob) : none)",
            cm_grad_extra_output(g, 1), through_log_prob, cm_grad_input(g, 1),
            cm_grad_incoming(g, 0), cm_grad_input(g, 2)));
}

CM_BODY(cross_entropy_body,
        "log_prob = LogSoftmax<axis=1>(scores);"
        "output = NegativeLogLikelihoodLoss<reduction, ignore_index?>(log_prob, labels, weights)")

CM_OP(SoftmaxCrossEntropyLoss, .infer = cm_loss_infer, .prepare = cross_entropy_prepare,
      .run = cross_entropy_run, .grad = cross_entropy_grad, .body = cross_entropy_body,
      .require = cm_loss_require, .scores.labels = &cm_loss_labels);
