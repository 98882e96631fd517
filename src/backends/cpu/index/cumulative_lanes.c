/* CumSum and CumProd: neighbouring lanes together, on all threads. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/element_types.h"
#include "tensor/half.h"
#include "tensor/lanes.h"

enum {
    BLOCK = 256,     /* lanes at a time */
    GRAIN = 1 << 15, /* elements worth a thread */
};

struct cumulation {
    bool exclusive, reverse;
};

/* n neighbouring lanes and so many steps, `stride` elements apart: totals go on by x, and y takes
 * them before or after. Totals are as wide as 64 bits allow. */
typedef void step_fn(int64_t n, int64_t steps, int64_t stride, const void *x, void *totals, void *y,
                     bool exclusive);

#define STEPS(ctype, total, expression)                                                            \
    for (int64_t k = 0; k < steps; k++) {                                                          \
        const ctype *xs = (const ctype *)from + k * stride;                                        \
        CM_ANY_ORDER                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const total x = (total)xs[i], t = ((total *)totals)[i], next = (expression);           \
            ((total *)totals)[i] = next;                                                           \
            ((ctype *)to)[k * stride + i] = (ctype)(exclusive ? t : next);                         \
        }                                                                                          \
    }
#define PARAMETERS                                                                                 \
    int64_t n, int64_t steps, int64_t stride, const void *from, void *totals, void *to,            \
        bool exclusive
#define STEP(name, TAG, ctype, total, expression)                                                  \
    static CM_BUILT_##TAG void name##_##TAG(PARAMETERS)                                            \
    {                                                                                              \
        STEPS(ctype, total, expression)                                                            \
    }

/* Floats go four steps at a time, so that totals are read and written once for them. */
static CM_ALWAYS_INLINE void add_floats_on(enum cm_machine machine, PARAMETERS)
{
    const float *row = from;
    double *sums = totals;
    float *out = to;
    (void)machine;
    for (; !exclusive && steps >= 4; steps -= 4, row += 4 * stride, out += 4 * stride) {
        CM_ANY_ORDER
        for (int64_t i = 0; i < n; i++) {
            const double a = sums[i] + row[i], b = a + row[stride + i];
            const double c = b + row[2 * stride + i], d = c + row[3 * stride + i];
            out[i] = (float)a;
            out[stride + i] = (float)b;
            out[2 * stride + i] = (float)c;
            out[3 * stride + i] = (float)d;
            sums[i] = d;
        }
    }
    from = row;
    to = out;
    STEPS(float, double, t + x)
}
CM_TWO_BUILDS(add_floats, (PARAMETERS), (machine, n, steps, stride, from, totals, to, exclusive))

static void sum_FLOAT(PARAMETERS)
{
    add_floats_builds[cm_this_machine()](n, steps, stride, from, totals, to, exclusive);
}

#define SUM_FLOAT(TAG, ctype, name, extra)    STEP(name, TAG, ctype, double, t + x)
#define SUM_INTEGER(TAG, ctype, name, extra)  STEP(name, TAG, ctype, uint64_t, t + x)
#define PROD_FLOAT(TAG, ctype, name, extra)   STEP(name, TAG, ctype, double, t *x)
#define PROD_INTEGER(TAG, ctype, name, extra) STEP(name, TAG, ctype, uint64_t, t *x)
SUM_FLOAT(DOUBLE, double, sum, ())
CM_INTEGER_TYPES(SUM_INTEGER, sum, ())
CM_FLOAT_TYPES(PROD_FLOAT, prod, ())
CM_INTEGER_TYPES(PROD_INTEGER, prod, ())

struct row {
    step_fn *steps[CM_DTYPE_COUNT];
    int first; /* the total of nothing */
};
static const struct row sum = {{CM_NUMBER_TYPES(CM_LOOP_ENTRY, sum, ())}, 0};
static const struct row prod = {{CM_NUMBER_TYPES(CM_LOOP_ENTRY, prod, ())}, 1};

union totals {
    double reals[BLOCK];
    uint64_t wholes[BLOCK];
};

struct job {
    const struct cm_tensor *x, *y;
    step_fn *step;
    bool narrow, is_float;
    int first;
    struct cumulation how;
    struct cm_lanes lanes;
};

static void start(const struct job *job, int64_t n, union totals *totals)
{
    for (int64_t i = 0; i < n; i++) {
        if (job->is_float)
            totals->reals[i] = job->first;
        else
            totals->wholes[i] = (uint64_t)job->first;
    }
}

/* All steps of n lanes, which begin with elements at .. at + n. */
static void advance(const struct job *job, int64_t at, int64_t n, int64_t stride,
                    union totals *totals)
{
    const size_t width = cm_dtype_size(job->x->type);
    if (!job->narrow) {
        job->step(n, job->lanes.length, stride, (const char *)job->x->data + (size_t)at * width,
                  totals, (char *)job->y->data + (size_t)at * width, job->how.exclusive);
        return;
    }
    for (int64_t k = 0; k < job->lanes.length; k++, at += stride) {
        float block[BLOCK];
        cm_narrow_load(job->x->type, job->x->data, at, n, block);
        job->step(n, 1, 0, block, totals, block, job->how.exclusive);
        cm_narrow_store(job->y->type, job->y->data, at, n, block);
    }
}

/* Blocks of lanes, counted through all parts of the outer axes. */
static void cumulate(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct cm_lanes *lanes = &job->lanes;
    const int64_t blocks = (lanes->inner + BLOCK - 1) / BLOCK;
    for (int64_t b = begin; b < end; b++) {
        const int64_t inner = b % blocks * BLOCK;
        const int64_t n = lanes->inner - inner < BLOCK ? lanes->inner - inner : BLOCK;
        const int64_t first = b / blocks * lanes->length * lanes->inner + inner;
        const int64_t last = first + (lanes->length - 1) * lanes->inner;
        union totals totals;
        start(job, n, &totals);
        advance(job, job->how.reverse ? last : first, n,
                job->how.reverse ? -lanes->inner : lanes->inner, &totals);
    }
}

static void cumulate_all(struct job *job)
{
    const struct cm_lanes *lanes = &job->lanes;
    const int64_t blocks = lanes->outer * ((lanes->inner + BLOCK - 1) / BLOCK);
    const int64_t each = cm_tensor_count(job->x) / blocks;
    /* Elements of packed types share bytes. */
    const bool packed = cm_dtype_size(job->x->type) == 0;
    cm_parallel(blocks, packed ? blocks : each < GRAIN ? GRAIN / (each + 1) + 1 : 1, cumulate, job);
}

static const struct row *row_of(const struct cm_call *call)
{
    return cm_str_is(call->node->op_type, "CumSum") ? &sum : &prod;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    return cm_dtype_is_narrow(x->type) || row_of(call)->steps[x->type] ||
           cm_call_decline_type(call, x);
}

static enum cm_status run(struct cm_call *call)
{
    const struct row *row = row_of(call);
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *shape = &x->shape;
    const bool narrow = cm_dtype_is_narrow(x->type);
    const int64_t wanted = cm_tensor_int(call->in[1], 0);
    int axis;
    if (!cm_axis_fix(wanted, shape->rank, &axis))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "axis %lld is out of range for rank %d",
                            (long long)wanted, shape->rank);
    struct job job = {
        .x = x,
        .y = call->out[0],
        .step = row->steps[narrow ? CM_FLOAT : x->type],
        .narrow = narrow,
        .is_float = cm_dtype_info(x->type)->kind == CM_CLASS_FLOAT,
        .first = row->first,
        .how = {cm_node_int(call->node, "exclusive"), cm_node_int(call->node, "reverse")},
        .lanes = cm_lanes_of(shape, axis)};
    cumulate_all(&job);
    return CM_OK;
}

CM_KERNEL(cpu, CumSum, .label = "lanes together", .accepts = accepts, .run = run);
CM_KERNEL(cpu, CumProd, .label = "lanes together", .accepts = accepts, .run = run);
