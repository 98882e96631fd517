/* Softmax, LogSoftmax and their gradients of what softmax_rows.c leaves: doubles, narrow floats,
 * and long axes that are not the last. Lines that do not lie in memory as they are computed go
 * through scratch; each part of the lines has its own. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/line.h"
#include "tensor/vector_math.h"

enum { LANES = 16, FEW = 16 };

#define T               float
#define EXP(machine, x) cm_exp_on(machine, x)
#define FOR(name)       float_##name
#include "backends/cpu/norm/softmax_line.inc"
#define T               double
#define EXP(machine, x) ((void)(machine), exp(x))
#define FOR(name)       double_##name
#include "backends/cpu/norm/softmax_line.inc"

CM_BUILDS(float_softmax, (int64_t n, float *x), (machine, n, x))
CM_BUILDS(float_log_softmax, (int64_t n, float *x), (machine, n, x))

/* One line of n elements, floats or doubles, in place; y is that of the result, of a gradient. */
typedef void line_fn(enum cm_dtype type, int64_t n, const double *y, void *line);

/* ONNX defines Softmax by a function body; each of its operators rounds, and published results show
 * it. */
static void softmax_rounding(enum cm_dtype type, int64_t n, float *x)
{
    const float most = float_greatest(n, x);
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] -= most;
    cm_line_round(type, n, x);
    cm_exp_floats(n, x, x);
    cm_line_round(type, n, x);
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i];
    float sum = (float)total;
    cm_line_round(type, 1, &sum);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void softmax(enum cm_dtype type, int64_t n, const double *y, void *line)
{
    (void)y;
    if (type == CM_FLOAT)
        float_softmax_builds[cm_this_machine()](n, line);
    else if (type == CM_DOUBLE)
        double_softmax_on(CM_PLAIN, n, line);
    else
        softmax_rounding(type, n, line);
}

static void log_softmax(enum cm_dtype type, int64_t n, const double *y, void *line)
{
    (void)y;
    if (type == CM_DOUBLE)
        double_log_softmax_on(CM_PLAIN, n, line);
    else
        float_log_softmax_builds[cm_this_machine()](n, line);
}

/* dx = y * (dy - sum(dy * y)) */
static void softmax_slopes(enum cm_dtype type, int64_t n, const double *y, void *line)
{
    double *dy = line, sum = 0;
    (void)type;
    for (int64_t i = 0; i < n; i++)
        sum += dy[i] * y[i];
    for (int64_t i = 0; i < n; i++)
        dy[i] = y[i] * (dy[i] - sum);
}

/* dx = dy - exp(y) * sum(dy) */
static void log_softmax_slopes(enum cm_dtype type, int64_t n, const double *y, void *line)
{
    double *dy = line, sum = 0;
    (void)type;
    for (int64_t i = 0; i < n; i++)
        sum += dy[i];
    for (int64_t i = 0; i < n; i++)
        dy[i] -= exp(y[i]) * sum;
}

static const struct soft_kind {
    line_fn *turn;
    bool gradient; /* of dy, operand 0, and the result y, operand 1; in double */
} of_softmax = {softmax, false}, of_log_softmax = {log_softmax, false},
  of_slopes = {softmax_slopes, true}, of_log_slopes = {log_softmax_slopes, true};

struct soft_lines {
    const struct soft_kind *kind;
    int64_t outer, count, inner;  /* lines of count elements, inner apart */
    enum cm_dtype wide;           /* that lines are computed in */
    bool in_place;                /* in the memory of the result */
    int64_t parts, lines_of_part; /* otherwise, each with room for a line and one of y */
    size_t room;
};

enum { MOST_PARTS = 16, PART_ELEMENTS = 1 << 13 /* worth a thread */ };

static bool accepts(struct cm_call *call)
{
    if (call->n_in > 1 && !cm_shape_equal(&call->in[0]->shape, &call->in[1]->shape))
        return cm_call_decline(call, "the operands differ in shape");
    if (call->in[0]->shape.rank == 0)
        return cm_call_decline(call, "the operand is a scalar");
    return cm_tensor_count(call->in[0]) > 0 || cm_call_decline_empty(call, call->in[0]);
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct soft_lines *lines = cm_call_state(call, sizeof *lines);
    int axis = 0;
    size_t bytes;
    lines->kind = call->arg;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d", x->rank);
    lines->outer = cm_shape_span(x, 0, axis);
    lines->count = x->dims[axis];
    lines->inner = cm_shape_span(x, axis + 1, x->rank);
    lines->wide = lines->kind->gradient ? CM_DOUBLE : cm_line_wide(call->in[0]->type);
    lines->in_place =
        !lines->kind->gradient && lines->inner == 1 && lines->wide == call->in[0]->type;
    const int64_t all = lines->outer * lines->inner;
    const int64_t least = 1 + PART_ELEMENTS / (lines->count + 1);
    const int64_t parts = all / least < MOST_PARTS ? all / least : MOST_PARTS;
    lines->parts = parts > 1 ? parts : 1;
    lines->lines_of_part = (all + lines->parts - 1) / lines->parts;
    if (!cm_size_mul((size_t)lines->count, (lines->kind->gradient ? 2 : 1) * sizeof(double),
                     &lines->room) ||
        !cm_size_mul(lines->room, (size_t)lines->parts, &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axis is too long");
    if (!lines->in_place)
        cm_call_scratch(call, bytes);
    return CM_OK;
}

static void turn_parts(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct soft_lines *l = call->state;
    const struct cm_tensor *x = call->in[0], *to = call->out[0];
    for (int64_t part = begin; part < end; part++) {
        void *scratch = (char *)call->scratch + (size_t)part * l->room;
        double *y = l->kind->gradient ? (double *)scratch + l->count : NULL;
        const int64_t first = part * l->lines_of_part, next = first + l->lines_of_part;
        for (int64_t i = first; i < next && i < l->outer * l->inner; i++) {
            const int64_t at = i / l->inner * l->count * l->inner + i % l->inner;
            void *line =
                l->in_place ? (char *)to->data + (size_t)at * cm_dtype_size(to->type) : scratch;
            cm_line_load(cm_line_at(x, at), l->inner, l->count, l->wide, line);
            if (y)
                cm_line_load(cm_line_at(call->in[1], at), l->inner, l->count, CM_DOUBLE, y);
            l->kind->turn(x->type, l->count, y, line);
            if (!l->in_place)
                cm_line_save(cm_line_at(to, at), l->inner, l->count, l->wide, line);
        }
    }
}

static enum cm_status run(struct cm_call *call)
{
    cm_parallel(((const struct soft_lines *)call->state)->parts, 1, turn_parts, call);
    return CM_OK;
}

#define LINES .label = "softmax by lines", .accepts = accepts, .prepare = prepare, .run = run
CM_KERNEL_AT(cpu, 1, Softmax, LINES, .arg = &of_softmax);
CM_KERNEL_AT(cpu, 1, LogSoftmax, LINES, .arg = &of_log_softmax);
CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", SoftmaxGrad, LINES, .arg = &of_slopes);
CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", LogSoftmaxGrad, LINES, .arg = &of_log_slopes);
