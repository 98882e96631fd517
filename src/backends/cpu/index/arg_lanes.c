/* ArgMax and ArgMin: lanes side by side, or blocks of floats, on all threads. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "base/number.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "tensor/lanes.h"
#include "tensor/number_keys.h"

#include <math.h>

enum {
    BLOCK = 256,     /* keys at a time */
    GRAIN = 1 << 15, /* elements worth a thread */
};

struct arg {
    struct cm_lanes lanes;
    bool smallest, last; /* of equal ones */
};

/* Element k of n neighbouring lanes against their best so far; mask turns "smaller" into "larger".
 */
static void arg_step(int64_t n, uint64_t mask, bool last, int64_t k, const uint64_t *keys,
                     uint64_t *best, int64_t *y)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = keys[i] ^ mask;
        if (k == 0 || key < best[i] || (last && key == best[i])) {
            best[i] = key;
            y[i] = k;
        }
    }
}

/* A lane whose elements lie side by side: a block of keys at a time. */
static int64_t arg_of_lane(const struct cm_tensor *x, cm_order_fn *order, uint64_t mask,
                           const struct arg *arg, int64_t first)
{
    uint64_t keys[BLOCK], best = 0;
    int64_t found = 0;
    for (int64_t at = 0; at < arg->lanes.length; at += BLOCK) {
        const int64_t left = arg->lanes.length - at;
        const int64_t n = left < BLOCK ? left : BLOCK;
        order(x, first + at, n, mask, keys);
        for (int64_t i = 0; i < n; i++)
            arg_step(1, mask, arg->last, at + i, &keys[i], &best, &found);
    }
    return found;
}

static void arg_across(const struct cm_tensor *x, cm_order_fn *order, uint64_t mask,
                       const struct arg *arg, int64_t first, int64_t *y)
{
    const struct cm_lanes *lanes = &arg->lanes;
    uint64_t keys[BLOCK], best[BLOCK];
    for (int64_t at = 0; at < lanes->inner; at += BLOCK) {
        const int64_t left = lanes->inner - at;
        const int64_t n = left < BLOCK ? left : BLOCK;
        for (int64_t k = 0; k < lanes->length; k++) {
            order(x, first + k * lanes->inner + at, n, mask, keys);
            arg_step(n, mask, arg->last, k, keys, best, y + at);
        }
    }
}

/* The largest of x times sign in a block of floats, and how many are NaN; several at a time. */
static CM_ALWAYS_INLINE void best_of_block_on(enum cm_machine machine, int64_t count,
                                              const float *x, float sign, float *best, int *nans)
{
    enum { LANES = 32 };
    float lanes[LANES];
    int found = 0;
    int64_t i = 0;
    (void)machine;
    for (int k = 0; k < LANES; k++)
        lanes[k] = -INFINITY;
    for (; i + LANES <= count; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            const float v = x[i + k] * sign;
            lanes[k] = v > lanes[k] ? v : lanes[k];
        }
    }
    for (int k = 0; i < count; i++, k++)
        lanes[k] = x[i] * sign > lanes[k] ? x[i] * sign : lanes[k];
    for (i = 0; i < count; i++)
        found += x[i] != x[i];
    for (int k = 1; k < LANES; k++)
        lanes[0] = lanes[k] > lanes[0] ? lanes[k] : lanes[0];
    *best = lanes[0];
    *nans = found;
}
CM_TWO_BUILDS(best_of_block, (int64_t count, const float *x, float sign, float *best, int *nans),
              (machine, count, x, sign, best, nans))

/* A lane of floats, the first of equal ones: only a block with a better one is searched. */
static int64_t arg_of_floats(int64_t length, const float *x, float sign)
{
    float best = -INFINITY;
    int64_t found = 0;
    for (int64_t at = 0; at < length; at += BLOCK) {
        const int64_t n = length - at < BLOCK ? length - at : BLOCK;
        float here;
        int nans;
        best_of_block_builds[cm_this_machine()](n, x + at, sign, &here, &nans);
        if (nans > 0) {
            for (found = at; x[found] == x[found];)
                found++;
            return found;
        }
        if (here > best) {
            best = here;
            for (found = at; x[found] * sign != best;)
                found++;
        }
    }
    return found;
}

struct search {
    const struct cm_tensor *x;
    const struct arg *arg;
    cm_order_fn *order;
    uint64_t mask;
    int64_t *y;
};

static void arg_some(void *arg, int64_t begin, int64_t end)
{
    const struct search *job = arg;
    const struct cm_lanes *lanes = &job->arg->lanes;
    for (int64_t outer = begin; outer < end; outer++) {
        const int64_t first = outer * lanes->length * lanes->inner;
        if (lanes->inner > 1)
            arg_across(job->x, job->order, job->mask, job->arg, first,
                       job->y + outer * lanes->inner);
        else if (job->x->type == CM_FLOAT && !job->arg->last)
            job->y[outer] = arg_of_floats(lanes->length, (const float *)job->x->data + first,
                                          job->mask ? 1 : -1);
        else
            job->y[outer] = arg_of_lane(job->x, job->order, job->mask, job->arg, first);
    }
}

static bool accepts(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    if (cm_tensor_count(x) == 0)
        return cm_call_decline_empty(call, x);
    return cm_order_of(x->type) || cm_call_decline_type(call, x);
}

static enum cm_status prepare_for(struct cm_call *call, bool smallest)
{
    const struct cm_shape *x = &call->in[0]->shape;
    struct arg *arg = cm_call_state(call, sizeof *arg);
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", x->rank);
    *arg = (struct arg){.lanes = cm_lanes_of(x, axis),
                        .smallest = smallest,
                        .last = cm_node_int(call->node, "select_last_index")};
    return CM_OK;
}

static enum cm_status prepare_largest(struct cm_call *call)
{
    return prepare_for(call, false);
}

static enum cm_status prepare_smallest(struct cm_call *call)
{
    return prepare_for(call, true);
}

static enum cm_status run(struct cm_call *call)
{
    const struct arg *arg = call->state;
    const struct cm_tensor *x = call->in[0];
    /* Keys are turned over for the largest. NaN's key is such that it comes out as 0, before all
     * numbers. */
    struct search job = {x, arg, cm_order_of(x->type), arg->smallest ? 0 : UINT64_MAX,
                         call->out[0]->data};
    const int64_t each = arg->lanes.length * arg->lanes.inner;
    cm_parallel(arg->lanes.outer, each < GRAIN ? GRAIN / each : 1, arg_some, &job);
    return CM_OK;
}

CM_KERNEL(cpu, ArgMax, .label = "blocks of keys", .accepts = accepts, .prepare = prepare_largest,
          .run = run);
CM_KERNEL(cpu, ArgMin, .label = "blocks of keys", .accepts = accepts, .prepare = prepare_smallest,
          .run = run);
