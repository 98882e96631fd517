/* SoftmaxGrad and LogSoftmaxGrad: from dy and the result y of the forward operator. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/softmax_grad.h"

#include "base/number.h"
#include "graph/node_formula.h"
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

struct softmax_lines {
    int64_t outer, count, inner; /* lines of count elements, inner apart */
};

static enum cm_status lines_infer(struct cm_infer *in)
{
    const struct cm_type *y = cm_infer_type(in, Y);
    int axis;
    if (y->rank != CM_RANK_UNKNOWN && (y->rank != 0 || cm_node_int(in->node, "axis") != -1))
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), y->rank, false, &axis));
    return cm_infer_set(in, 0, y);
}

static enum cm_status lines_prepare(struct cm_call *call)
{
    const struct cm_shape *y = &call->in[Y]->shape;
    struct softmax_lines *lines = cm_call_state(call, sizeof *lines);
    int axis = 0;
    size_t bytes;
    *lines = (struct softmax_lines){.outer = 1, .count = 1, .inner = 1};
    if (!cm_shape_equal(y, &call->in[DY]->shape))
        return cm_call_fail(call, CM_BAD_MODEL, "its operands differ in shape");
    if (y->rank > 0) {
        if (!cm_axis_fix(cm_node_int(call->node, "axis"), y->rank, &axis))
            return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d",
                                y->rank);
        lines->outer = cm_shape_span(y, 0, axis);
        lines->count = y->dims[axis];
        lines->inner = cm_shape_span(y, axis + 1, y->rank);
    }
    if (!cm_size_mul((size_t)lines->count, 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axis is too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

static enum cm_status lines_run(struct cm_call *call)
{
    const struct softmax_lines *l = call->state;
    slope_line_fn *const turn = *(slope_line_fn *const *)call->op->arg;
    double *y = call->scratch, *dy = y + l->count;
    for (int64_t i = 0; l->count > 0 && i < l->outer * l->inner; i++) {
        const int64_t at = i / l->inner * l->count * l->inner + i % l->inner;
        cm_line_load(cm_line_at(call->in[Y], at), l->inner, l->count, CM_DOUBLE, y);
        cm_line_load(cm_line_at(call->in[DY], at), l->inner, l->count, CM_DOUBLE, dy);
        turn(l->count, y, dy);
        cm_line_save(cm_line_at(call->out[0], at), l->inner, l->count, CM_DOUBLE, dy);
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

static enum cm_sharing share_dy(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == DY ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

#define LINES(which)                                                                               \
    .infer = lines_infer, .prepare = lines_prepare, .run = lines_run, .body = lines_body,          \
    .memory.share = share_dy, .arg = &(which), .cost.work = cm_work_linear

CM_OP_IN(cameo, "ai.cameo", SoftmaxGrad, LINES(softmax));
CM_OP_IN(cameo, "ai.cameo", LogSoftmaxGrad, LINES(log_softmax));

enum cm_status cm_softmax_grad(struct cm_grad *g)
{
    return cm_grad_formula(g, "d_input = ai.cameo::%.*sGrad<axis>(d_output, output)",
                           CM_STR_FMT(g->node->op_type));
}
