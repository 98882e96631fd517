/* SoftmaxGrad and LogSoftmaxGrad: from dy and the result y of the forward operator. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/softmax_grad.h"

#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "tensor/half.h"
#include "tensor/line.h"

#include <math.h>

enum { DY, Y }; /* operands */

/* One line of n elements; dy becomes dx. */
typedef void slope_line_fn(int64_t n, const double *y, double *dy);

/* dx = y * (dy - sum(dy * y)) */
static void softmax_line(int64_t n, const double *y, double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += dy[i] * y[i];
    for (int64_t i = 0; i < n; i++)
        dy[i] = y[i] * (dy[i] - sum);
}

/* dx = dy - exp(y) * sum(dy) */
static void log_softmax_line(int64_t n, const double *y, double *dy)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += dy[i];
    for (int64_t i = 0; i < n; i++)
        dy[i] -= exp(y[i]) * sum;
}

enum cm_status cm_softmax_infer(struct cm_infer *in, int i)
{
    const struct cm_type *x = cm_infer_type(in, i);
    if (x->rank == 0 && cm_node_int(in->node, "axis") == -1)
        return cm_infer_set(in, 0, x);
    return cm_lanes_infer(in, i);
}

enum cm_status cm_softmax_prepare(struct cm_call *call, size_t buffers)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct cm_lanes *lanes = cm_call_state(call, sizeof *lanes);
    size_t bytes;
    *lanes = (struct cm_lanes){1, 1, 1};
    if (x->rank > 0)
        CM_TRY(cm_lanes_read(call, x, lanes));
    if (!cm_size_mul((size_t)lanes->length, buffers * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axis is too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static enum cm_status lines_infer(struct cm_infer *in)
{
    return cm_softmax_infer(in, Y);
}

static enum cm_status lines_prepare(struct cm_call *call)
{
    if (!cm_shape_equal(&call->in[Y]->shape, &call->in[DY]->shape))
        return cm_call_fail(call, CM_BAD_MODEL, "its operands differ in shape");
    return cm_softmax_prepare(call, 2);
}

static enum cm_status lines_run(struct cm_call *call)
{
    const struct cm_lanes *l = call->state;
    slope_line_fn *const turn = *(slope_line_fn *const *)call->op->arg;
    double *y = call->scratch, *dy = y + l->length;
    for (int64_t i = 0; l->length > 0 && i < l->outer * l->inner; i++) {
        const int64_t at = cm_lanes_first(l, i);
        cm_line_load(cm_line_at(call->in[Y], at), l->inner, l->length, CM_DOUBLE, y);
        cm_line_load(cm_line_at(call->in[DY], at), l->inner, l->length, CM_DOUBLE, dy);
        turn(l->length, y, dy);
        cm_line_save(cm_line_at(call->out[0], at), l->inner, l->length, CM_DOUBLE, dy);
    }
    return CM_OK;
}

static slope_line_fn *const softmax = softmax_line, *const log_softmax = log_softmax_line;

/* Narrow types are computed in float: the sum goes over many elements. */
static enum cm_status lines_body(struct cm_body *b)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, cm_body_input(b, DY))->dtype;
    const char *const wide = cm_dtype_name(dtype == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT);
    return cm_body_formula(b, "dy = %s(dY); y = %s(Y); axes = [axis]; %s; dX = %s", wide, wide,
                           b->node->op->arg == &softmax
                               ? "sum = ReduceSum(dy * y, axes); dx = y * (dy - sum)"
                               : "sum = ReduceSum(dy, axes); dx = dy - Exp(y) * sum",
                           cm_dtype_is_narrow(dtype) ? "CastLike(dx, dY)" : "dx");
}

#define LINES(which)                                                                               \
    .infer = lines_infer, .prepare = lines_prepare, .run = lines_run, .body = lines_body,          \
    .memory.share = cm_share_first, .arg = &(which), .cost.work = cm_work_linear

CM_OP_IN(cameo, "ai.cameo", SoftmaxGrad, LINES(softmax));
CM_OP_IN(cameo, "ai.cameo", LogSoftmaxGrad, LINES(log_softmax));

enum cm_status cm_softmax_grad(struct cm_grad *g)
{
    return cm_grad_formula(g, "d_input = ai.cameo::%.*sGrad<axis>(d_output, output)",
                           CM_STR_FMT(g->node->op_type));
}
