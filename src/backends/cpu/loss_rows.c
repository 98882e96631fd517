/* SoftmaxCrossEntropyLoss of (N, C) floats, and its gradient. Rows are independent; their losses
 * are added in order. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/softmax_rows.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/op.h"

#include <math.h>

enum { PART_ELEMENTS = 1 << 13 }; /* worth a thread */

enum { SCORES, LABELS, WEIGHTS };                 /* operands */
enum { LOSS, LOG_PROB };                          /* results */
enum { G_LOSS, G_LOG_PROB, G_LABELS, G_WEIGHTS }; /* operands of the gradient */

struct loss_plan {
    int64_t rows, classes;
    bool ignores, each; /* each: a loss per row */
    bool mean;
    int64_t ignored;
    int labels, weights; /* operands */
};

static bool accepts_loss(struct cm_call *call, int scores, int labels)
{
    for (int i = 0; i < call->n_in; i++)
        if (i != labels && call->in[i] && call->in[i]->type != CM_FLOAT)
            return cm_call_decline(call, "input %d is %s", i, cm_dtype_name(call->in[i]->type));
    const struct cm_shape *x = &call->in[scores]->shape;
    if (x->rank < 2 || cm_shape_elements(x) == 0)
        return cm_call_decline(call, "it is empty");
    if (cm_shape_span(x, 2, x->rank) != 1)
        return cm_call_decline(call, "its classes do not lie side by side");
    if (cm_tensor_count(call->in[labels]) != x->dims[0])
        return cm_call_decline(call, "its operands differ in shape");
    return true;
}

static bool accepts_loss_forward(struct cm_call *call)
{
    return accepts_loss(call, SCORES, LABELS);
}

static bool accepts_loss_backward(struct cm_call *call)
{
    const bool each = cm_str_is(cm_node_str(call->node, "reduction"), "none");
    if (!accepts_loss(call, G_LOG_PROB, G_LABELS))
        return false;
    if (cm_tensor_count(call->in[G_LOSS]) != (each ? call->in[G_LOG_PROB]->shape.dims[0] : 1))
        return cm_call_decline(call, "dLoss does not have the shape of the loss");
    return true;
}

/* Scratch: by row its loss, or its slope. */
static enum cm_status prepare_loss(struct cm_call *call, int scores, int labels, int weights)
{
    struct loss_plan *plan = cm_call_state(call, sizeof *plan);
    const struct cm_shape *x = &call->in[scores]->shape;
    const struct cm_str reduction = cm_node_str(call->node, "reduction");
    size_t bytes;
    *plan = (struct loss_plan){.rows = x->dims[0],
                               .classes = x->dims[1],
                               .ignores = cm_node_has_attr(call->node, "ignore_index"),
                               .each = cm_str_is(reduction, "none"),
                               .mean = cm_str_is(reduction, "mean"),
                               .ignored = cm_node_int(call->node, "ignore_index"),
                               .labels = labels,
                               .weights = weights};
    if (!cm_size_mul((size_t)plan->rows, sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many rows");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static enum cm_status prepare_loss_forward(struct cm_call *call)
{
    return prepare_loss(call, SCORES, LABELS, WEIGHTS);
}

static enum cm_status prepare_loss_backward(struct cm_call *call)
{
    return prepare_loss(call, G_LOG_PROB, G_LABELS, G_WEIGHTS);
}

/* The class of a row, -1 where it is ignored, and what it weighs. */
static int64_t class_of(const struct cm_call *call, int64_t row, double *weight)
{
    const struct loss_plan *plan = call->state;
    const struct cm_tensor *weights = call->n_in > plan->weights ? call->in[plan->weights] : NULL;
    const int64_t c = cm_tensor_int(call->in[plan->labels], row);
    *weight = 0;
    if (plan->ignores && c == plan->ignored)
        return -1;
    *weight = weights ? (double)((const float *)weights->data)[c] : 1;
    return c;
}

/* Refuses classes that are none, and sums the weights of all rows. */
static enum cm_status check_classes(struct cm_call *call, double *total)
{
    const struct loss_plan *plan = call->state;
    *total = 0;
    for (int64_t row = 0; row < plan->rows; row++) {
        const int64_t c = cm_tensor_int(call->in[plan->labels], row);
        double weight;
        if ((c < 0 || c >= plan->classes) && !(plan->ignores && c == plan->ignored))
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "class %lld at position %lld is outside the %lld classes",
                                (long long)c, (long long)row, (long long)plan->classes);
        class_of(call, row, &weight);
        *total += weight;
    }
    return CM_OK;
}

static void lose_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct loss_plan *plan = call->state;
    struct cm_tensor *log_prob = call->n_out > LOG_PROB ? call->out[LOG_PROB] : NULL;
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * plan->classes;
        const float *x = (const float *)call->in[SCORES]->data + at;
        float *to = log_prob ? (float *)log_prob->data + at : NULL;
        double weight;
        const int64_t c = class_of(call, row, &weight);
        const double off = c >= 0 || to ? cm_log_softmax_row(plan->classes, x, to) : 0;
        ((double *)call->scratch)[row] = c < 0 ? 0 : weight * (off - (double)x[c]);
    }
}

static enum cm_status run_loss_forward(struct cm_call *call)
{
    const struct loss_plan *plan = call->state;
    const double *losses = call->scratch;
    double sum = 0, total;
    CM_TRY(check_classes(call, &total));
    cm_parallel(plan->rows, 1 + PART_ELEMENTS / plan->classes, lose_rows, call);
    if (!call->out[LOSS])
        return CM_OK;
    float *loss = call->out[LOSS]->data;
    for (int64_t row = 0; row < plan->rows; row++) {
        sum += losses[row];
        if (plan->each)
            loss[row] = (float)losses[row];
    }
    if (!plan->each)
        *loss = (float)(plan->mean ? sum / total : sum);
    return CM_OK;
}

/* dscores = slope * (softmax - chosen) */
static void slope_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct loss_plan *plan = call->state;
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * plan->classes;
        const double slope = ((const double *)call->scratch)[row];
        const float *log_prob = (const float *)call->in[G_LOG_PROB]->data + at;
        float *to = (float *)call->out[0]->data + at;
        double weight;
        const int64_t c = class_of(call, row, &weight);
        if (slope == 0) {
            memset(to, 0, (size_t)plan->classes * sizeof *to);
            continue;
        }
        cm_scaled_exp_row(plan->classes, log_prob, (float)slope, to);
        to[c] = (float)(slope * (exp((double)log_prob[c]) - 1));
    }
}

static enum cm_status run_loss_backward(struct cm_call *call)
{
    const struct loss_plan *plan = call->state;
    const float *d_loss = call->in[G_LOSS]->data;
    double *slopes = call->scratch, total, weight;
    CM_TRY(check_classes(call, &total));
    for (int64_t row = 0; row < plan->rows; row++) {
        const int64_t c = class_of(call, row, &weight);
        slopes[row] =
            c < 0 ? 0 : (double)d_loss[plan->each ? row : 0] * weight / (plan->mean ? total : 1);
    }
    cm_parallel(plan->rows, 1 + PART_ELEMENTS / plan->classes, slope_rows, call);
    return CM_OK;
}

CM_KERNEL(cpu, SoftmaxCrossEntropyLoss, .accepts = accepts_loss_forward,
          .prepare = prepare_loss_forward, .run = run_loss_forward);
CM_KERNEL_IN(cpu, "ai.cameo", SoftmaxCrossEntropyLossGrad, .accepts = accepts_loss_backward,
             .prepare = prepare_loss_backward, .run = run_loss_backward);
