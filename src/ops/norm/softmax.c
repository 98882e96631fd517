/* Softmax, LogSoftmax, Hardmax: what turns a line of scores along one axis into another. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/norm/softmax_grad.h"
#include "tensor/line.h"

#include "base/number.h"
#include "base/parallel.h"
#include "tensor/vector_math.h"

/* Turns n elements in place. */
typedef void line_fn(int64_t n, void *line);

/* The same for a narrow type, whose elements are in floats. */
typedef void narrow_fn(enum cm_dtype type, int64_t n, float *line);

/* One row per operator. */
struct scoring {
    line_fn *in_float, *in_double;
    narrow_fn *rounding; /* NULL: in_float, and rounded once */
};

/* The greatest element is taken off first: exp then never overflows, and a line of -inf gives NaN
 * as the formula does. Sums are taken in lanes, so that many are added at once, a FEW at a time,
 * and those in double. */
enum { LANES = 16, FEW = 16 };

#define DEFINE_LINES(TAG, ctype)                                                                   \
    static CM_ALWAYS_INLINE ctype greatest_##TAG(int64_t n, const ctype *x)                        \
    {                                                                                              \
        ctype lanes[LANES], most = x[0];                                                           \
        int64_t i = 0;                                                                             \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = most;                                                                       \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];                              \
        for (int k = 0; k < LANES; k++)                                                            \
            most = lanes[k] > most ? lanes[k] : most;                                              \
        for (; i < n; i++)                                                                         \
            most = x[i] > most ? x[i] : most;                                                      \
        return most;                                                                               \
    }                                                                                              \
    static CM_ALWAYS_INLINE double sum_##TAG(int64_t n, const ctype *x)                            \
    {                                                                                              \
        double sum = 0;                                                                            \
        int64_t i = 0;                                                                             \
        while (i + LANES <= n) {                                                                   \
            ctype lanes[LANES] = {0};                                                              \
            for (int few = 0; few < FEW && i + LANES <= n; few++, i += LANES)                      \
                for (int k = 0; k < LANES; k++)                                                    \
                    lanes[k] += x[i + k];                                                          \
            for (int k = 0; k < LANES; k++)                                                        \
                sum += (double)lanes[k];                                                           \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            sum += (double)x[i];                                                                   \
        return sum;                                                                                \
    }                                                                                              \
    static CM_ALWAYS_INLINE void softmax_##TAG##_on(enum cm_machine machine, int64_t n, ctype *x)  \
    {                                                                                              \
        const ctype most = greatest_##TAG(n, x);                                                   \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = exp_##TAG(machine, x[i] - most);                                                \
        const ctype part = (ctype)(1 / sum_##TAG(n, x));                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] *= part;                                                                          \
    }                                                                                              \
    static CM_ALWAYS_INLINE void log_softmax_##TAG##_on(enum cm_machine machine, int64_t n,        \
                                                        ctype *x)                                  \
    {                                                                                              \
        enum { BLOCK = 256 };                                                                      \
        const ctype most = greatest_##TAG(n, x);                                                   \
        ctype block[BLOCK];                                                                        \
        double sum = 0;                                                                            \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                \
            const int64_t count = n - at < BLOCK ? n - at : BLOCK;                                 \
            for (int64_t i = 0; i < count; i++)                                                    \
                block[i] = exp_##TAG(machine, x[at + i] - most);                                   \
            sum += sum_##TAG(count, block);                                                        \
        }                                                                                          \
        const ctype off = (ctype)log(sum);                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = (x[i] - most) - off;                                                            \
    }                                                                                              \
    static void hardmax_##TAG(int64_t n, void *line)                                               \
    {                                                                                              \
        ctype *x = line;                                                                           \
        int64_t at = 0;                                                                            \
        for (int64_t i = 1; i < n; i++)                                                            \
            at = x[i] > x[at] ? i : at;                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            x[i] = i == at;                                                                        \
    }
#define exp_FLOAT(machine, x)  cm_exp_on(machine, x)
#define exp_DOUBLE(machine, x) ((void)(machine), exp(x))
DEFINE_LINES(FLOAT, float)
DEFINE_LINES(DOUBLE, double)

/* The lines of floats are built per machine. */
#define DEFINE_SCORES(name)                                                                        \
    CM_BUILDS(name##_FLOAT, (int64_t n, float *x), (machine, n, x))                                \
    static void name##_FLOAT(int64_t n, void *line)                                                \
    {                                                                                              \
        name##_FLOAT_builds[cm_this_machine()](n, line);                                           \
    }                                                                                              \
    static void name##_DOUBLE(int64_t n, void *line)                                               \
    {                                                                                              \
        name##_DOUBLE_on(CM_PLAIN, n, line);                                                       \
    }
DEFINE_SCORES(softmax)
DEFINE_SCORES(log_softmax)

/* ONNX defines Softmax by a function body; each of its operators rounds, and published results show
 * it. */
static void softmax_rounding(enum cm_dtype type, int64_t n, float *x)
{
    const float most = greatest_FLOAT(n, x);
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

static const struct scoring softmax = {softmax_FLOAT, softmax_DOUBLE, softmax_rounding};
static const struct scoring log_softmax = {log_softmax_FLOAT, log_softmax_DOUBLE, NULL};
static const struct scoring hardmax = {hardmax_FLOAT, hardmax_DOUBLE, NULL};

static enum cm_status scoring_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    int axis;
    if (x->rank != CM_RANK_UNKNOWN && (x->rank != 0 || cm_node_int(in->node, "axis") != -1))
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    return cm_infer_set(in, 0, x);
}

struct lines {
    int64_t outer, count, inner; /* lines of count elements, inner apart */
};

static enum cm_status scoring_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct lines *lines = cm_call_state(call, sizeof *lines);
    int axis = 0;
    size_t bytes;
    *lines = (struct lines){1, 1, 1};
    if (x->rank > 0) {
        if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
            return cm_call_fail(call, CM_BAD_MODEL, "its axis is out of range for rank %d",
                                x->rank);
        *lines = (struct lines){cm_shape_span(x, 0, axis), x->dims[axis],
                                cm_shape_span(x, axis + 1, x->rank)};
    }
    if (!cm_size_mul((size_t)lines->count, sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its axis is too long");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

struct rows {
    const struct cm_tensor *x;
    struct cm_tensor *y;
    int64_t count;
    line_fn *turn;
};

/* Lines of neighbouring elements that need no conversion are turned where they are to be. */
static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    const struct rows *rows = arg;
    for (int64_t row = begin; row < end; row++) {
        const struct cm_line from = cm_line_at(rows->x, row * rows->count);
        char *line = (char *)rows->y->data + (size_t)from.at * cm_dtype_size(from.type);
        cm_line_load(from, 1, rows->count, from.type, line);
        rows->turn(rows->count, line);
    }
}

enum { GRAIN = 1 << 14 }; /* elements worth a thread */

static enum cm_status scoring_run(struct cm_call *call)
{
    const struct scoring *what = call->op->arg;
    const struct lines *lines = call->state;
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const enum cm_dtype wide = cm_line_wide(x->type);
    line_fn *turn = wide == CM_DOUBLE ? what->in_double : what->in_float;
    if (cm_tensor_count(y) == 0)
        return CM_OK;
    if (lines->inner == 1 && x->type == wide) {
        struct rows rows = {x, y, lines->count, turn};
        cm_parallel(lines->outer, lines->count < GRAIN ? GRAIN / lines->count : 1, turn_rows,
                    &rows);
        return CM_OK;
    }
    for (int64_t outer = 0; outer < lines->outer; outer++) {
        for (int64_t inner = 0; inner < lines->inner; inner++) {
            const int64_t at = outer * lines->count * lines->inner + inner;
            cm_line_load(cm_line_at(x, at), lines->inner, lines->count, wide, call->scratch);
            if (x->type != wide && what->rounding)
                what->rounding(x->type, lines->count, call->scratch);
            else
                turn(lines->count, call->scratch);
            cm_line_save(cm_line_at(y, at), lines->inner, lines->count, wide, call->scratch);
        }
    }
    return CM_OK;
}

/* exp(x - max) / sum, or its logarithm (x - max) - log(sum). */
static enum cm_status scoring_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0);
    const cm_value axes = cm_emit_int64s(b, cm_node_int(b->node, "axis"));
    const cm_value off = cm_emit(b, "Sub", x, cm_emit(b, "ReduceMax", x, axes));
    const cm_value raised = cm_emit(b, "Exp", off);
    const cm_value sum = cm_emit(b, "ReduceSum", raised, axes);
    const bool logarithm = b->node->op->arg == &log_softmax;
    return cm_body_return(b, 0,
                          logarithm ? cm_emit(b, "Sub", off, cm_emit(b, "Log", sum))
                                    : cm_emit(b, "Div", raised, sum));
}

static enum cm_sharing share_lines(const struct cm_node *node, int output, int input)
{
    (void)node;
    return output == 0 && input == 0 ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

CM_OP(Softmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_softmax_grad, .body = scoring_body, .share = share_lines, .arg = &softmax,
      .work = cm_work_linear, .probability_axis = "axis");
CM_OP(LogSoftmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_softmax_grad, .body = scoring_body, .share = share_lines, .arg = &log_softmax);
/* Steps have slope zero wherever they have one. */
CM_OP(Hardmax, .infer = scoring_infer, .prepare = scoring_prepare, .run = scoring_run,
      .grad = cm_grad_none, .share = share_lines, .arg = &hardmax);
