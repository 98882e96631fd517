/* Softmax and LogSoftmax of floats, and their gradients. Along an axis that is not the last, lanes
 * side by side go down it together; where they fill no vector, and for gradients, a few at a time
 * are made rows and put back. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/norm/softmax_rows.h"

#include "backends/cpu/exp_below.h"
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"

#include <math.h>

enum {
    LANES = CM_SOFT_LANES,
    FEW = 32,                /* sums of so many vectors in float, those in double */
    PART_ELEMENTS = 1 << 13, /* worth a thread */
};

typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4)));

/* ---- Whole vectors, compiled for each machine ---- */

struct soft_lanes {
    const float *x, *with;
    float *to; /* may be x */
    float a, b, c;
    double sum;
};

/* Lanes from the middle on, a quarter on, .. : what is joined with them is in all lanes at last. */
#define TURN(v, n)                                                                                 \
    __builtin_shufflevector(v, v, (n) % 16, (1 + (n)) % 16, (2 + (n)) % 16, (3 + (n)) % 16,        \
                            (4 + (n)) % 16, (5 + (n)) % 16, (6 + (n)) % 16, (7 + (n)) % 16,        \
                            (8 + (n)) % 16, (9 + (n)) % 16, (10 + (n)) % 16, (11 + (n)) % 16,      \
                            (12 + (n)) % 16, (13 + (n)) % 16, (14 + (n)) % 16, (15 + (n)) % 16)
#define GREATER(v, m) ((floats)(((ints)(v) & ((v) > (m))) | ((ints)(m) & ~((v) > (m)))))

/* Vectors go by address: by value they would depend on the instruction set. */
static CM_ALWAYS_INLINE float total(const floats *of)
{
    floats s = *of;
    s += TURN(s, 8);
    s += TURN(s, 4);
    s += TURN(s, 2);
    s += TURN(s, 1);
    return s[0];
}

/* A row of Softmax or LogSoftmax, whole: most operators of this file have many short ones. */
struct soft_row {
    const float *x;
    float *to; /* may be x; NULL: only most and sum are wanted, of logarithms */
    bool log;
    float most;
    double sum; /* of exp(x - most) */
};

/* The greatest of x and the lanes of `first`. */
static CM_ALWAYS_INLINE float greatest(int64_t vectors, const float *x, const floats *first)
{
    /* Four at a time: each waits for its own last one only. */
    floats m = *first, m1 = m, m2 = m, m3 = m;
    int64_t i = 0;
    for (; i + 4 <= vectors; i += 4) {
        const floats *v = (const floats *)(x + i * LANES);
        m = GREATER(v[0], m);
        m1 = GREATER(v[1], m1);
        m2 = GREATER(v[2], m2);
        m3 = GREATER(v[3], m3);
    }
    for (; i < vectors; i++) {
        const floats v = *(const floats *)(x + i * LANES);
        m = GREATER(v, m);
    }
    m = GREATER(m1, m);
    m2 = GREATER(m3, m2);
    m = GREATER(m2, m);
    m = GREATER(TURN(m, 8), m);
    m = GREATER(TURN(m, 4), m);
    m = GREATER(TURN(m, 2), m);
    m = GREATER(TURN(m, 1), m);
    return m[0];
}

static CM_ALWAYS_INLINE void raise(enum cm_machine machine, const float *x, float most, float *to)
{
    CM_ANY_ORDER
    for (int k = 0; k < LANES; k++)
        to[k] = exp_below(machine, x[k] - most);
}

/* From element n on: the last n lanes of a vector. */
static const int32_t is_last[2 * LANES] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                           0,  0,  0,  0,  0,  -1, -1, -1, -1, -1, -1,
                                           -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static CM_ALWAYS_INLINE void row_on(enum cm_machine machine, int64_t n, struct soft_row *l)
{
    const int64_t vectors = n / LANES, whole = vectors * LANES;
    const float *x = l->x;
    float *to = l->to;
    /* The last elements as a vector: those before them are in it once more, and do not count. A row
     * of less than a vector is filled up with numbers that change nothing. */
    const int64_t end = vectors ? n - LANES : 0;
    const ints counts = *(const ints *)(is_last + (vectors ? n - whole : LANES));
    floats rest = {0};
    if (vectors)
        rest = *(const floats *)(x + end);
    else {
        rest -= INFINITY;
        memcpy(&rest, x, (size_t)n * sizeof *x);
    }
    const float most = greatest(vectors, x, &rest);
    floats last, e;
    raise(machine, (const float *)&rest, most, (float *)&last);
    double sum = 0;
    floats s = (floats)((ints)last & counts);
    for (int64_t at = 0; at < vectors; at += FEW) {
        for (int64_t i = at; i < vectors && i < at + FEW; i++) {
            raise(machine, x + i * LANES, most, (float *)&e);
            if (!l->log)
                *(floats *)(to + i * LANES) = e;
            s += e;
        }
        if (vectors - at <= FEW)
            break;
        sum += (double)total(&s);
        s = (floats){0};
    }
    sum += (double)total(&s);
    l->most = most;
    l->sum = sum;
    if (!to)
        return;
    const float factor = (float)(1 / sum), off = l->log ? (float)log(sum) : 0;
    rest = l->log ? rest - most - off : last * factor;
    for (int64_t i = 0; i < vectors; i++) {
        floats *at = (floats *)(to + i * LANES);
        *at = l->log ? *(const floats *)(x + i * LANES) - most - off : *at * factor;
    }
    if (vectors)
        *(floats *)(to + end) = rest;
    else
        memcpy(to, &rest, (size_t)n * sizeof *to);
}

/* to = exp(x), of x that are not above 0 */
static CM_ALWAYS_INLINE void raise_on(enum cm_machine machine, int64_t vectors,
                                      struct soft_lanes *l)
{
    for (int64_t i = 0; i < vectors; i++)
        raise(machine, l->x + i * LANES, 0, l->to + i * LANES);
}

/* sum += x, or x * with */
static CM_ALWAYS_INLINE void add_on(enum cm_machine machine, int64_t vectors, struct soft_lanes *l)
{
    const float *x = l->x, *with = l->with;
    (void)machine;
    for (int64_t at = 0; at < vectors; at += FEW) {
        floats s = {0};
        for (int64_t i = at; i < vectors && i < at + FEW; i++)
            s += with ? *(const floats *)(x + i * LANES) * *(const floats *)(with + i * LANES)
                      : *(const floats *)(x + i * LANES);
        l->sum += (double)total(&s);
    }
}

/* to = (x - a) * b - c */
static CM_ALWAYS_INLINE void shift_on(enum cm_machine machine, int64_t vectors,
                                      struct soft_lanes *l)
{
    const float *x = l->x, a = l->a, b = l->b, c = l->c;
    float *to = l->to;
    (void)machine;
    for (int64_t i = 0; i < vectors; i++, x += LANES, to += LANES)
        *(floats *)to = (*(const floats *)x - a) * b - c;
}

/* to = with * (x - a) */
static CM_ALWAYS_INLINE void weigh_on(enum cm_machine machine, int64_t vectors,
                                      struct soft_lanes *l)
{
    const float *x = l->x, *with = l->with, a = l->a;
    float *to = l->to;
    (void)machine;
    for (int64_t i = 0; i < vectors; i++, x += LANES, with += LANES, to += LANES)
        *(floats *)to = *(const floats *)with * (*(const floats *)x - a);
}

/* to = x - a * exp(with) */
static CM_ALWAYS_INLINE void lower_on(enum cm_machine machine, int64_t vectors,
                                      struct soft_lanes *l)
{
    const float *x = l->x, *with = l->with, a = l->a;
    float *to = l->to;
    for (int64_t i = 0; i < vectors; i++, x += LANES, with += LANES, to += LANES) {
        CM_ANY_ORDER
        for (int k = 0; k < LANES; k++)
            to[k] = x[k] - a * cm_exp_on(machine, with[k]);
    }
}

#define BUILDS(name)                                                                               \
    CM_BUILDS(name, (int64_t vectors, struct soft_lanes * l), (machine, vectors, l))
BUILDS(raise)
BUILDS(add)
BUILDS(shift)
BUILDS(weigh)
BUILDS(lower)
CM_BUILDS(row, (int64_t n, struct soft_row *l), (machine, n, l))

/* ---- Rows ---- */

typedef void lanes_fn(int64_t vectors, struct soft_lanes *l);

/* Calls fn for n elements. The last ones, which fill no vector, go through a copy that is filled up
 * with `fill`. */
static void over_row(lanes_fn *const *builds, int64_t n, float fill, struct soft_lanes *l)
{
    const int64_t whole = n - n % LANES, left = n - whole;
    lanes_fn *const fn = builds[cm_this_machine()];
    const float *x = l->x, *with = l->with;
    float *to = l->to;
    fn(whole / LANES, l);
    if (!left)
        return;
    float of_x[LANES], of_with[LANES], of_to[LANES];
    for (int k = 0; k < LANES; k++) {
        of_x[k] = k < left ? x[whole + k] : fill;
        of_with[k] = with && k < left ? with[whole + k] : fill;
    }
    l->x = of_x;
    l->with = with ? of_with : NULL;
    l->to = of_to;
    fn(1, l);
    l->x = x;
    l->with = with;
    l->to = to;
    if (to)
        memcpy(to + whole, of_to, (size_t)left * sizeof *to);
}

static double sum_of(int64_t n, const float *x, const float *with)
{
    struct soft_lanes l = {.x = x, .with = with};
    over_row(add_builds, n, 0, &l);
    return l.sum;
}

double cm_log_softmax_row(int64_t n, const float *x, float *to)
{
    struct soft_row l = {.x = x, .to = to, .log = true};
    row_builds[cm_this_machine()](n, &l);
    return (double)l.most + log(l.sum);
}

static void scale_row(int64_t n, float factor, float *to)
{
    struct soft_lanes l = {.x = to, .to = to, .b = factor};
    over_row(shift_builds, n, 0, &l);
}

void cm_scaled_exp_row(int64_t n, const float *x, float factor, float *to)
{
    struct soft_lanes l = {.x = x, .to = to};
    over_row(raise_builds, n, 0, &l);
    scale_row(n, factor, to);
}

/* ---- One row of each operator: x is the operand, or dy ---- */

typedef void row_fn(int64_t n, const float *x, const float *y, float *to);

static void softmax(int64_t n, const float *x, const float *y, float *to)
{
    (void)y;
    struct soft_row l = {.x = x, .to = to};
    row_builds[cm_this_machine()](n, &l);
}

static void log_softmax(int64_t n, const float *x, const float *y, float *to)
{
    (void)y;
    cm_log_softmax_row(n, x, to);
}

/* dx = y * (dy - sum(dy * y)) */
static void softmax_slopes(int64_t n, const float *dy, const float *y, float *to)
{
    struct soft_lanes l = {.x = dy, .with = y, .to = to, .a = (float)sum_of(n, dy, y)};
    over_row(weigh_builds, n, 0, &l);
}

/* dx = dy - exp(y) * sum(dy) */
static void log_softmax_slopes(int64_t n, const float *dy, const float *y, float *to)
{
    struct soft_lanes l = {.x = dy, .with = y, .to = to, .a = (float)sum_of(n, dy, NULL)};
    over_row(lower_builds, n, 0, &l);
}

/* ---- Softmax, LogSoftmax and their gradients ---- */

enum { X };        /* operand */
enum { DY, OF_Y }; /* operands of the gradients */

enum { MOST_PARTS = 16, MOST_FLOATS = 1 << 20 /* of scratch, if there are several parts */ };

static const struct soft_kind {
    row_fn *turn;
    bool columns, log; /* lanes go down the axis side by side; as logarithms */
} of_softmax = {softmax, true, false}, of_log_softmax = {log_softmax, true, true},
  of_slopes = {softmax_slopes, false, false}, of_log_slopes = {log_softmax_slopes, false, false};

struct soft_plan {
    int64_t rows, size; /* of rows, or of groups of lanes */
    int64_t inner;      /* elements after the axis: 1 where rows lie as they are */
    int64_t wide;       /* lanes of a group */
    int64_t groups;     /* of lanes in `inner` */
    int64_t pitch;      /* from one lane to the next in scratch, no power of two */
    int64_t parts;      /* of the groups, each with scratch of its own */
    const struct soft_kind *kind;
};

/* Tensor `x` of the call decides. */
static bool accepts(struct cm_call *call, const struct cm_tensor *x)
{
    const struct cm_shape *shape = &x->shape;
    int axis;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && call->in[i]->type != CM_FLOAT)
            return cm_call_decline_type(call, call->in[i]);
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    if (shape->rank == 0 || !cm_axis_fix(cm_node_int(call->node, "axis"), shape->rank, &axis))
        return cm_call_decline(call, "the axis is out of range");
    return cm_shape_span(shape, axis + 1, shape->rank) == 1 || shape->dims[axis] < MOST_FLOATS ||
           cm_call_decline(call, "the axis is long and not the last");
}

static bool accepts_forward(struct cm_call *call)
{
    return accepts(call, call->in[X]);
}

static bool accepts_backward(struct cm_call *call)
{
    if (!cm_shape_equal(&call->in[DY]->shape, &call->in[OF_Y]->shape))
        return cm_call_decline(call, "the operands differ in shape");
    return accepts(call, call->in[OF_Y]);
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct soft_plan *plan = cm_call_state(call, sizeof *plan);
    int axis = 0;
    cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis);
    plan->size = x->dims[axis];
    plan->inner = cm_shape_span(x, axis + 1, x->rank);
    plan->kind = call->arg;
    plan->wide = plan->kind->columns ? CM_SOFT_COLUMNS : LANES;
    plan->groups = (plan->inner + plan->wide - 1) / plan->wide;
    plan->rows = cm_shape_span(x, 0, axis) * plan->groups;
    plan->pitch = plan->size + LANES;
    plan->parts = 1;
    while (plan->parts < MOST_PARTS && plan->parts < plan->rows &&
           4 * LANES * plan->pitch * plan->parts <= MOST_FLOATS)
        plan->parts *= 2;
    if (plan->inner > 1)
        cm_call_scratch(call, (size_t)(2 * LANES * plan->pitch * plan->parts) * sizeof(float));
    return CM_OK;
}

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct soft_plan *plan = call->state;
    const float *x = call->in[0]->data, *y = call->n_in > 1 ? call->in[OF_Y]->data : x;
    float *to = call->out[0]->data;
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * plan->size;
        plan->kind->turn(plan->size, x + at, y + at, to + at);
    }
}

/* Lanes of a tensor as rows in scratch, or back. */
static void lanes_to_rows(const struct soft_plan *plan, int64_t count, const float *lanes,
                          float *rows)
{
    for (int64_t i = 0; i < plan->size; i++, lanes += plan->inner)
        for (int64_t k = 0; k < count; k++)
            rows[k * plan->pitch + i] = lanes[k];
}

static void rows_to_lanes(const struct soft_plan *plan, int64_t count, const float *rows,
                          float *lanes)
{
    for (int64_t i = 0; i < plan->size; i++, lanes += plan->inner)
        for (int64_t k = 0; k < count; k++)
            lanes[k] = rows[k * plan->pitch + i];
}

/* As many of the lanes as fill whole vectors; how many that were. */
static int64_t turn_columns(const struct soft_plan *plan, int64_t count, const float *x, float *to)
{
    int64_t done = 0;
    while (plan->kind->columns && count - done >= LANES) {
        const int64_t lanes = count - done >= CM_SOFT_COLUMNS ? CM_SOFT_COLUMNS : LANES;
        cm_softmax_columns(plan->size, plan->inner, lanes, plan->kind->log, x + done, to + done);
        done += lanes;
    }
    return done;
}

static void turn_groups(void *arg, int64_t begin, int64_t end)
{
    const struct cm_call *call = arg;
    const struct soft_plan *plan = call->state;
    const float *x = call->in[0]->data, *y = call->n_in > 1 ? call->in[OF_Y]->data : NULL;
    float *to = call->out[0]->data;
    for (int64_t part = begin; part < end; part++) {
        float *rows = (float *)call->scratch + 2 * LANES * plan->pitch * part;
        float *with = rows + LANES * plan->pitch;
        const int64_t last = plan->rows * (part + 1) / plan->parts;
        for (int64_t i = plan->rows * part / plan->parts; i < last; i++) {
            const int64_t lane = i % plan->groups * plan->wide;
            int64_t at = i / plan->groups * plan->size * plan->inner + lane;
            int64_t count = plan->inner - lane < plan->wide ? plan->inner - lane : plan->wide;
            const int64_t done = turn_columns(plan, count, x + at, to + at);
            at += done;
            count -= done;
            lanes_to_rows(plan, count, x + at, rows);
            if (y)
                lanes_to_rows(plan, count, y + at, with);
            for (int64_t k = 0; k < count; k++)
                plan->kind->turn(plan->size, rows + k * plan->pitch, with + k * plan->pitch,
                                 rows + k * plan->pitch);
            rows_to_lanes(plan, count, rows, to + at);
        }
    }
}

static enum cm_status run(struct cm_call *call)
{
    const struct soft_plan *plan = call->state;
    if (plan->inner > 1) {
        const bool alone = cm_tensor_count(call->out[0]) < PART_ELEMENTS;
        cm_parallel(plan->parts, alone ? plan->parts : 1, turn_groups, call);
        return CM_OK;
    }
    cm_parallel(plan->rows, 1 + PART_ELEMENTS / plan->size, turn_rows, call);
    return CM_OK;
}

#define FORWARD  .accepts = accepts_forward, .prepare = prepare, .run = run
#define BACKWARD .accepts = accepts_backward, .prepare = prepare, .run = run

CM_KERNEL(cpu, Softmax, .label = "softmax by rows", FORWARD, .arg = &of_softmax);
CM_KERNEL(cpu, LogSoftmax, .label = "softmax by rows", FORWARD, .arg = &of_log_softmax);
CM_KERNEL_IN(cpu, "ai.cameo", SoftmaxGrad, .label = "softmax gradient by rows", BACKWARD,
             .arg = &of_slopes);
CM_KERNEL_IN(cpu, "ai.cameo", LogSoftmaxGrad, .label = "softmax gradient by rows", BACKWARD,
             .arg = &of_log_slopes);
