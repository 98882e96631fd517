/* SoftmaxGrad and LogSoftmaxGrad: from dy and the result y of the forward operator. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/softmax_grad.h"

#include "base/number.h"
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
static cm_value widen(struct cm_body *b, cm_value x)
{
    const enum cm_dtype dtype = cm_builder_type(&b->build, x)->dtype;
    if (dtype == CM_FLOAT || dtype == CM_DOUBLE)
        return x;
    const struct cm_attribute_proto to = cm_attr_int(cm_builder_arena(&b->build), "to", CM_FLOAT);
    return cm_emit_with(b, "Cast", CM_ATTRIBUTES(to), x);
}

static enum cm_status lines_body(struct cm_body *b)
{
    const cm_value dy = widen(b, cm_body_input(b, DY)), y = widen(b, cm_body_input(b, Y));
    const cm_value axes = cm_emit_int64s(b, cm_node_int(b->node, "axis"));
    cm_value dx;
    if (b->node->op->arg == &softmax) {
        const cm_value sum = cm_emit(b, "ReduceSum", cm_emit(b, "Mul", dy, y), axes);
        dx = cm_emit(b, "Mul", y, cm_emit(b, "Sub", dy, sum));
    } else {
        const cm_value sum = cm_emit(b, "ReduceSum", dy, axes);
        dx = cm_emit(b, "Sub", dy, cm_emit(b, "Mul", cm_emit(b, "Exp", y), sum));
    }
    if (dy != cm_body_input(b, DY))
        dx = cm_emit(b, "CastLike", dx, cm_body_input(b, DY));
    return cm_body_return(b, 0, dx);
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
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const struct cm_attribute_proto axis = cm_attr_int(arena, "axis", cm_node_int(g->node, "axis"));
    const struct cm_str op =
        cm_arena_printf(arena, "ai.cameo::%.*sGrad", CM_STR_FMT(g->node->op_type));
    return cm_grad_set(g, 0,
                       cm_emit_with(g, cm_str_text(op), CM_ATTRIBUTES(axis), cm_grad_incoming(g, 0),
                                    cm_grad_output(g, 0)));
}
