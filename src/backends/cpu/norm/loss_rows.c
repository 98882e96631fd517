/* SoftmaxCrossEntropyLoss of floats, and its gradient of any float type. A row is the scores of one
 * position; where they do not lie side by side they are copied. Rows are independent, their losses
 * are added in order. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/softmax_rows.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/line.h"

#include <math.h>

enum {
    PART_ELEMENTS = 1 << 13, /* worth a thread */
    MOST_PARTS = 64,
};

enum { SCORES, LABELS, WEIGHTS };                 /* operands */
enum { LOSS, LOG_PROB };                          /* results */
enum { G_LOSS, G_LOG_PROB, G_LABELS, G_WEIGHTS }; /* operands of the gradient */

struct loss_places {
    int scores, labels, weights; /* operands */
};
static const struct loss_places forward = {SCORES, LABELS, WEIGHTS};
static const struct loss_places backward = {G_LOG_PROB, G_LABELS, G_WEIGHTS};

struct loss_plan {
    int64_t rows, classes, area; /* area: from one score of a row to the next */
    int64_t parts, per_part;     /* rows of a part, which has room for one of them */
    bool ignores, each;          /* each: a loss per row */
    bool mean;
    int64_t ignored;
    const struct loss_places *at;
};

static bool accepts_loss(struct cm_call *call)
{
    const struct loss_places *at = call->arg;
    for (int i = 0; i < call->n_in; i++)
        if (i != at->labels && call->in[i] && call->in[i]->type != CM_FLOAT && at != &backward)
            return cm_call_decline_type(call, call->in[i]);
    const struct cm_shape *x = &call->in[at->scores]->shape;
    if (x->rank < 2)
        return cm_call_decline(call, "the scores have rank %d", x->rank);
    if (cm_shape_elements(x) == 0)
        return cm_call_decline_empty(call, call->in[at->scores]);
    if (cm_tensor_count(call->in[at->labels]) != cm_shape_elements(x) / x->dims[1])
        return cm_call_decline(call, "the operands differ in shape");
    if (call->n_in > at->weights && call->in[at->weights] &&
        cm_tensor_count(call->in[at->weights]) != x->dims[1])
        return cm_call_decline(call, "operand 'weights' does not have one number for each class");
    return true;
}

static bool accepts_loss_backward(struct cm_call *call)
{
    const bool each = cm_str_is(cm_node_str(call->node, "reduction"), "none");
    if (!accepts_loss(call))
        return false;
    if (cm_tensor_count(call->in[G_LOSS]) != (each ? cm_tensor_count(call->in[G_LABELS]) : 1))
        return cm_call_decline(call, "dLoss does not have the shape of the loss");
    return true;
}

/* Scratch: by row its loss, or its slope; by part a row. */
static enum cm_status prepare_loss(struct cm_call *call)
{
    const struct loss_places *at = call->arg;
    struct loss_plan *plan = cm_call_state(call, sizeof *plan);
    const struct cm_shape *x = &call->in[at->scores]->shape;
    const struct cm_str reduction = cm_node_str(call->node, "reduction");
    size_t bytes, of_parts;
    *plan = (struct loss_plan){.rows = cm_tensor_count(call->in[at->labels]),
                               .classes = x->dims[1],
                               .area = cm_shape_span(x, 2, x->rank),
                               .ignores = cm_node_has_attr(call->node, "ignore_index"),
                               .each = cm_str_is(reduction, "none"),
                               .mean = cm_str_is(reduction, "mean"),
                               .ignored = cm_node_int(call->node, "ignore_index"),
                               .at = at};
    const int64_t parts = plan->rows / (1 + PART_ELEMENTS / plan->classes);
    plan->parts = parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
    plan->per_part = (plan->rows + plan->parts - 1) / plan->parts;
    if (!cm_size_mul((size_t)plan->rows, sizeof(double), &bytes) ||
        !cm_size_mul((size_t)plan->classes, (size_t)plan->parts * sizeof(float), &of_parts) ||
        !cm_size_add(bytes, of_parts, &bytes))
        return cm_call_fail(call, CM_LIMIT, "it has too many rows");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* The class of a row, -1 where it is ignored, and what it weighs. */
static int64_t class_of(const struct cm_call *call, int64_t row, double *weight)
{
    const struct loss_plan *plan = call->state;
    const struct cm_tensor *weights =
        call->n_in > plan->at->weights ? call->in[plan->at->weights] : NULL;
    const int64_t c = cm_tensor_int(call->in[plan->at->labels], row);
    *weight = 0;
    if (plan->ignores && c == plan->ignored)
        return -1;
    *weight = weights ? cm_tensor_real(weights, c) : 1;
    return c;
}

/* Refuses classes that are none, and sums the weights of all rows. */
static enum cm_status check_classes(struct cm_call *call, double *total)
{
    const struct loss_plan *plan = call->state;
    *total = 0;
    for (int64_t row = 0; row < plan->rows; row++) {
        const int64_t c = cm_tensor_int(call->in[plan->at->labels], row);
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

/* Where a row is in a tensor of scores. */
static int64_t first_of(const struct loss_plan *plan, int64_t row)
{
    return row / plan->area * plan->classes * plan->area + row % plan->area;
}

/* The room of a part, behind the losses. */
static float *room_of(const struct cm_call *call, int64_t part)
{
    const struct loss_plan *plan = call->state;
    return (float *)((double *)call->scratch + plan->rows) + part * plan->classes;
}

static void copy_row(int64_t n, const float *from, int64_t from_step, float *to, int64_t to_step)
{
    for (int64_t i = 0; i < n; i++)
        to[i * to_step] = from[i * from_step];
}

/* The logarithm of the sum of a row's exponentials; log_prob may be NULL. */
static double log_sum_of(const struct loss_plan *plan, const float *x, float *log_prob, float *room)
{
    if (plan->area == 1)
        return cm_log_softmax_row(plan->classes, x, log_prob);
    copy_row(plan->classes, x, plan->area, room, 1);
    const double sum = cm_log_softmax_row(plan->classes, room, room);
    if (log_prob)
        copy_row(plan->classes, room, 1, log_prob, plan->area);
    return sum;
}

static void lose_part(const struct cm_call *call, int64_t part)
{
    const struct loss_plan *plan = call->state;
    struct cm_tensor *log_prob = call->n_out > LOG_PROB ? call->out[LOG_PROB] : NULL;
    const int64_t begin = part * plan->per_part, end = begin + plan->per_part;
    for (int64_t row = begin; row < end && row < plan->rows; row++) {
        const int64_t at = first_of(plan, row);
        const float *x = (const float *)call->in[SCORES]->data + at;
        float *to = log_prob ? (float *)log_prob->data + at : NULL;
        double weight;
        const int64_t c = class_of(call, row, &weight);
        const double off = c >= 0 || to ? log_sum_of(plan, x, to, room_of(call, part)) : 0;
        ((double *)call->scratch)[row] = c < 0 ? 0 : weight * (off - (double)x[c * plan->area]);
    }
}

static void lose_parts(void *arg, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++)
        lose_part(arg, part);
}

static enum cm_status run_loss_forward(struct cm_call *call)
{
    const struct loss_plan *plan = call->state;
    const double *losses = call->scratch;
    double sum = 0, total;
    CM_TRY(check_classes(call, &total));
    cm_parallel(plan->parts, 1, lose_parts, call);
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

/* to = slope * (softmax - chosen), of a row whose scores lie side by side */
static void slope_row(int64_t n, const float *log_prob, int64_t class, double slope, float *to)
{
    if (slope == 0) {
        memset(to, 0, (size_t)n * sizeof *to);
        return;
    }
    const float of_class = (float)(slope * (exp((double)log_prob[class]) - 1));
    cm_scaled_exp_row(n, log_prob, (float)slope, to);
    to[class] = of_class;
}

static void slope_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct loss_plan *plan = call->state;
    for (int64_t row = begin * plan->per_part; row < end * plan->per_part && row < plan->rows;
         row++) {
        const int64_t at = first_of(plan, row);
        const float *log_prob = (const float *)call->in[G_LOG_PROB]->data + at;
        float *to = (float *)call->out[0]->data + at, *room = room_of(call, begin);
        const double slope = ((const double *)call->scratch)[row];
        double weight;
        const int64_t c = class_of(call, row, &weight);
        if (plan->area == 1) {
            slope_row(plan->classes, log_prob, c, slope, to);
            continue;
        }
        copy_row(plan->classes, log_prob, plan->area, room, 1);
        slope_row(plan->classes, room, c, slope, room);
        copy_row(plan->classes, room, 1, to, plan->area);
    }
}

/* The same of other types, in double. */
static void slope_wide_parts(void *arg, int64_t begin, int64_t end)
{
    enum { CLASSES = 256 }; /* at a time */
    const struct cm_call *call = arg;
    const struct loss_plan *plan = call->state;
    for (int64_t row = begin * plan->per_part; row < end * plan->per_part && row < plan->rows;
         row++) {
        const double slope = ((const double *)call->scratch)[row];
        double weight, line[CLASSES];
        const int64_t class = class_of(call, row, &weight);
        for (int64_t c = 0; c < plan->classes; c += CLASSES) {
            const int64_t n = plan->classes - c < CLASSES ? plan->classes - c : CLASSES;
            const int64_t at = first_of(plan, row) + c * plan->area;
            cm_line_load(cm_line_at(call->in[G_LOG_PROB], at), plan->area, n, CM_DOUBLE, line);
            for (int64_t i = 0; i < n; i++)
                line[i] = slope == 0 ? 0 : slope * (exp(line[i]) - (c + i == class));
            cm_line_save(cm_line_at(call->out[0], at), plan->area, n, CM_DOUBLE, line);
        }
    }
}

static enum cm_status run_loss_backward(struct cm_call *call)
{
    const struct loss_plan *plan = call->state;
    const bool floats = call->in[G_LOG_PROB]->type == CM_FLOAT;
    double *slopes = call->scratch, total, weight;
    CM_TRY(check_classes(call, &total));
    for (int64_t row = 0; row < plan->rows; row++) {
        const int64_t c = class_of(call, row, &weight);
        slopes[row] = c < 0 ? 0
                            : cm_tensor_real(call->in[G_LOSS], plan->each ? row : 0) * weight /
                                  (plan->mean ? total : 1);
    }
    cm_parallel(plan->parts, 1, floats ? slope_parts : slope_wide_parts, call);
    return CM_OK;
}

CM_KERNEL(cpu, SoftmaxCrossEntropyLoss, .label = "loss by rows", .accepts = accepts_loss,
          .prepare = prepare_loss, .run = run_loss_forward, .arg = &forward);
CM_KERNEL_IN(cpu, "ai.cameo", SoftmaxCrossEntropyLossGrad, .label = "loss gradient by rows",
             .accepts = accepts_loss_backward, .prepare = prepare_loss, .run = run_loss_backward,
             .arg = &backward);
