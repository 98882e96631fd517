/* Softmax, LogSoftmax, Hardmax: what turns a line of scores along one axis into another. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/common/move.h"
#include "ops/norm/softmax_grad.h"
#include "tensor/half.h"
#include "tensor/line.h"

#include <math.h>

/* Changes a line of n scores in place; type is what they are stored as. */
typedef void line_fn(enum cm_dtype type, int64_t n, double *x);

static int64_t place_of_greatest(int64_t n, const double *x)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        at = x[i] > x[at] ? i : at;
    return at;
}

/* x as a narrow type holds it; other types are rounded once, when they are stored. */
static double rounded(enum cm_dtype type, double x)
{
    float value = (float)x;
    if (!cm_dtype_is_narrow(type))
        return x;
    cm_line_round(type, 1, &value);
    return (double)value;
}

/* exp(x - max) / sum. The greatest is subtracted first: exp then never overflows, and a line of
 * -inf gives NaN as the formula does. ONNX defines Softmax by a function body; each of its
 * operators rounds, and published results show it. */
static void softmax_line(enum cm_dtype type, int64_t n, double *x)
{
    const double most = x[place_of_greatest(n, x)];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = rounded(type, exp(rounded(type, x[i] - most)));
        sum += x[i];
    }
    sum = rounded(type, sum);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

/* x - max - log(sum) */
static void log_softmax_line(enum cm_dtype type, int64_t n, double *x)
{
    const double most = x[place_of_greatest(n, x)];
    double sum = 0;
    (void)type;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    sum = log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - most) - sum;
}

/* 1 where the first of the greatest is, else 0 */
static void hardmax_line(enum cm_dtype type, int64_t n, double *x)
{
    const int64_t at = place_of_greatest(n, x);
    (void)type;
    for (int64_t i = 0; i < n; i++)
        x[i] = i == at;
}

static line_fn *const softmax = softmax_line, *const log_softmax = log_softmax_line,
                      *const hardmax = hardmax_line;

static enum cm_status scoring_infer(struct cm_infer *in)
{
    return cm_softmax_infer(in, 0);
}

static enum cm_status scoring_prepare(struct cm_call *call)
{
    return cm_softmax_prepare(call, 1);
}

static enum cm_status scoring_run(struct cm_call *call)
{
    line_fn *const turn = *(line_fn *const *)call->op->arg;
    const struct cm_lanes *l = call->state;
    const struct cm_tensor *x = call->in[0], *y = call->out[0];
    for (int64_t i = 0; l->length > 0 && i < l->outer * l->inner; i++) {
        const int64_t at = cm_lanes_first(l, i);
        cm_line_load(cm_line_at(x, at), l->inner, l->length, CM_DOUBLE, call->scratch);
        turn(x->type, l->length, call->scratch);
        cm_line_save(cm_line_at(y, at), l->inner, l->length, CM_DOUBLE, call->scratch);
    }
    return CM_OK;
}

/* exp(x - max) / sum, or its logarithm (x - max) - log(sum). */
static enum cm_status scoring_body(struct cm_body *b)
{
    return cm_body_formula(b,
                           "axes = [axis]; off = input - ReduceMax(input, axes); raised = Exp(off);"
                           "sum = ReduceSum(raised, axes); output = %s",
                           b->node->op->arg == &log_softmax ? "off - Log(sum)" : "raised / sum");
}

CM_OP(Softmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_softmax_grad, .body = scoring_body, .memory.share = cm_share_first,
      .arg = &softmax, .cost.work = cm_work_linear, .scores.probability_axis = "axis");
CM_OP(LogSoftmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_softmax_grad, .body = scoring_body, .memory.share = cm_share_first,
      .arg = &log_softmax);
/* Steps have slope zero wherever they have one. */
CM_OP(Hardmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_grad_none, .memory.share = cm_share_first, .arg = &hardmax);
