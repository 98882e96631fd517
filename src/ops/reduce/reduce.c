/* The ten Reduce operators. A reduction starts somewhere, folds each element into a total that is
 * wider than the elements, and finishes the total; everything else (axes, shapes, the walk) is one.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/parallel.h"
#include "ops/elementwise/types.h"
#include "ops/reduce/reduction.h"
#include "tensor/half.h"

/* Which axes are reduced, for a tensor of this rank. axes is NULL when the operand is absent. */
static bool fill_axes(const struct cm_tensor *axes, bool noop, int rank, bool *reduced,
                      int64_t *wrong)
{
    const int64_t count = axes ? cm_tensor_count(axes) : 0;
    for (int i = 0; i < rank; i++)
        reduced[i] = count == 0 && !noop;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        *wrong = cm_tensor_int(axes, i);
        if (!cm_axis_fix(*wrong, rank, &axis) || reduced[axis])
            return false;
        reduced[axis] = true;
    }
    return true;
}

/* The axes are not known yet: keepdims keeps the rank, and else their number may be known. */
static enum cm_status infer_unknown_axes(struct cm_infer *in, bool keepdims)
{
    const struct cm_type *x = cm_infer_type(in, 0), *axes = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK];
    int rank = CM_RANK_UNKNOWN;
    if (keepdims)
        rank = x->rank;
    else if (x->rank != CM_RANK_UNKNOWN && axes->rank == 1 && axes->dims[0].value > 0 &&
             axes->dims[0].value <= x->rank)
        rank = x->rank - (int)axes->dims[0].value;
    for (int i = 0; i < rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

/* A list of known integers that becomes one: the number of elements of a shape, for one. */
static void infer_known(struct cm_infer *in, int rank)
{
    const struct cm_reduction *reduction = in->node->op->arg;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    struct cm_known x;
    if (!reduction->of_numbers || (dtype != CM_INT64 && dtype != CM_INT32) ||
        !cm_infer_known(in, 0, &x) || x.rank != 1 || x.count == 0)
        return;
    struct cm_quantity total = x.items[0];
    for (size_t i = 1; i < x.count; i++)
        if (!reduction->of_numbers(cm_quantity_symbols(in, dtype), total, x.items[i], &total))
            return;
    if (dtype == CM_INT32 && total.is_number && total.number != (int32_t)total.number)
        return; /* it will wrap */
    cm_infer_set_known(in, 0, rank, 1, &total);
}

enum cm_status cm_reduce_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *axes_type = cm_infer_type(in, 1);
    const bool keepdims = cm_node_int(in->node, "keepdims");
    const bool noop = cm_node_int(in->node, "noop_with_empty_axes");
    const struct cm_tensor *axes = cm_infer_constant(in, 1);

    if (axes_type && axes_type->rank > 1)
        return cm_infer_fail(in, "axes has rank %d, needs 1", axes_type->rank);
    const bool given = axes_type && !(axes_type->rank == 1 && axes_type->dims[0].value == 0);
    if (given && !axes)
        return infer_unknown_axes(in, keepdims);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, given || keepdims || noop ? CM_RANK_UNKNOWN : 0,
                                   NULL);
    bool reduced[CM_MAX_RANK];
    int64_t wrong = 0;
    if (!fill_axes(given ? axes : NULL, noop, x->rank, reduced, &wrong))
        return cm_infer_fail(in, "axis %lld is out of range for rank %d, or there twice",
                             (long long)wrong, x->rank);
    struct cm_dim dims[CM_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keepdims)
            dims[rank++] = CM_DIM(1);
    }
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    if (x->rank == 1 && reduced[0])
        infer_known(in, rank);
    return CM_OK;
}

/* ---- running ---- */

/* Axes that are kept, or that are reduced, outside the innermost run: innermost first. */
struct axes {
    int rank;
    int64_t count;
    int64_t dims[CM_MAX_RANK], strides[CM_MAX_RANK];
};

/* Neighbouring axes of one kind are merged; the innermost of all is the run. */
struct plan {
    bool run_is_reduced;
    int64_t run, terms; /* terms: elements that one result is made of */
    struct axes kept, reduced;
};

static void push_axis(struct axes *axes, int64_t dim, int64_t stride)
{
    axes->dims[axes->rank] = dim;
    axes->strides[axes->rank++] = stride;
    axes->count *= dim;
}

static void make_plan(struct plan *plan, const struct cm_shape *x, const bool *reduced)
{
    plan->run_is_reduced = false;
    plan->run = plan->terms = plan->kept.count = plan->reduced.count = 1;
    plan->kept.rank = plan->reduced.rank = 0;
    int64_t stride = 1, dim = 1;
    bool kind = false, any = false, have_run = false;
    for (int i = x->rank - 1; i >= -1; i--) {
        if (i >= 0 && x->dims[i] == 1)
            continue;
        if (i >= 0 && any && reduced[i] == kind) {
            dim *= x->dims[i];
            continue;
        }
        if (any && !have_run) {
            plan->run = dim;
            plan->run_is_reduced = kind;
            have_run = true;
        } else if (any) {
            push_axis(kind ? &plan->reduced : &plan->kept, dim, stride);
        }
        if (any)
            stride *= dim;
        if (i >= 0) {
            dim = x->dims[i];
            kind = reduced[i];
            any = true;
        }
    }
    for (int i = 0; i < x->rank; i++)
        if (reduced[i])
            plan->terms *= x->dims[i];
    if (plan->terms == 0) /* nothing to fold, however large the other axes are said to be */
        plan->reduced.count = 0;
}

/* The next place along axes; index begins as zeros. */
static int64_t next_place(const struct axes *axes, int64_t *index, int64_t at)
{
    for (int i = 0; i < axes->rank; i++) {
        at += axes->strides[i];
        if (++index[i] < axes->dims[i])
            return at;
        at -= axes->strides[i] * axes->dims[i];
        index[i] = 0;
    }
    return at;
}

enum { BLOCK = 256 };

/* A block of totals, the widest kind of which is two doubles. */
union totals {
    uint64_t align;
    char bytes[BLOCK * 2 * sizeof(double)];
};

struct job {
    const struct cm_reduce_loops *loops;
    enum cm_dtype type;
    bool narrow;
    const char *x;
    char *y;
    const struct plan *plan;
};

/* Folds count elements from place at on: all into totals[0], or each into its own. */
static void fold(const struct job *job, int64_t at, int64_t count, bool into_one, void *totals)
{
    cm_fold_fn *loop = into_one ? job->loops->along : job->loops->across;
    if (!job->narrow) {
        loop(count, job->x + (size_t)at * cm_dtype_size(job->type), totals);
        return;
    }
    float block[BLOCK]; /* a run folded across totals is never longer than this */
    for (int64_t done = 0; done < count; done += BLOCK) {
        const int64_t n = count - done < BLOCK ? count - done : BLOCK;
        cm_narrow_load(job->type, job->x, at + done, n, block);
        loop(n, block, totals);
    }
}

static void finish(const struct job *job, int64_t at, int64_t count, void *totals)
{
    if (!job->narrow) {
        job->loops->finish(count, totals, job->plan->terms,
                           job->y + (size_t)at * cm_dtype_size(job->type));
        return;
    }
    float block[BLOCK];
    job->loops->finish(count, totals, job->plan->terms, block);
    cm_narrow_store(job->type, job->y, at, count, block);
}

/* One block of results, whose elements begin at place from: a run of kept elements, or one result
 * of reduced runs. */
static void reduce_block(const struct job *job, int64_t from, int64_t to, int64_t count)
{
    const struct plan *plan = job->plan;
    union totals totals;
    int64_t index[CM_MAX_RANK] = {0}, at = from;
    job->loops->start(count, &totals);
    for (int64_t i = 0; i < plan->reduced.count; i++) {
        fold(job, at, plan->run_is_reduced ? plan->run : count, plan->run_is_reduced, &totals);
        at = next_place(&plan->reduced, index, at);
    }
    finish(job, to, count, &totals);
}

/* Where the elements of result line `line` begin. */
static int64_t place_of(const struct axes *axes, int64_t line)
{
    int64_t at = 0;
    for (int i = 0; i < axes->rank; i++) {
        at += line % axes->dims[i] * axes->strides[i];
        line /= axes->dims[i];
    }
    return at;
}

/* Blocks [begin, end) of the results, each line of which is cut into as many. */
static void reduce_some(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const struct plan *plan = job->plan;
    const int64_t results = plan->run_is_reduced ? 1 : plan->run;
    const int64_t blocks = (results + BLOCK - 1) / BLOCK;
    for (int64_t block = begin; block < end; block++) {
        const int64_t line = block / blocks, at = block % blocks * BLOCK;
        reduce_block(job, place_of(&plan->kept, line) + at, line * results + at,
                     results - at < BLOCK ? results - at : BLOCK);
    }
}

enum { GRAIN = 1 << 16 }; /* elements worth a thread */

static void reduce_all(struct job *job)
{
    const struct plan *plan = job->plan;
    const int64_t results = plan->run_is_reduced ? 1 : plan->run;
    const int64_t blocks = plan->kept.count * ((results + BLOCK - 1) / BLOCK);
    const int64_t width = results < BLOCK ? results : BLOCK;
    int64_t each = 1, grain;
    if (!cm_dim_mul(plan->terms > 0 ? plan->terms : 1, width, &each) || each > GRAIN)
        each = GRAIN;
    grain = GRAIN / each;
    /* Results of packed types may share a byte, which two threads must not write. */
    cm_parallel(blocks, cm_dtype_info(job->type)->bits % 8 != 0 ? blocks : grain, reduce_some, job);
}

enum cm_status cm_reduce_prepare(struct cm_call *call)
{
    bool *noop = cm_call_state(call, sizeof *noop);
    *noop = cm_node_int(call->node, "noop_with_empty_axes");
    return CM_OK;
}

enum cm_status cm_reduce_run(struct cm_call *call)
{
    const struct cm_reduction *reduction = call->op->arg;
    const struct cm_tensor *x = call->in[0];
    bool reduced[CM_MAX_RANK];
    int64_t wrong = 0;
    if (!fill_axes(call->n_in > 1 ? call->in[1] : NULL, *(const bool *)call->state, x->shape.rank,
                   reduced, &wrong))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "axis %lld is out of range for rank %d, or there twice",
                            (long long)wrong, x->shape.rank);
    const bool narrow = cm_dtype_is_narrow(x->type) && !reduction->loops[x->type].start;
    struct plan plan;
    make_plan(&plan, &x->shape, reduced);
    struct job job = {.loops = &reduction->loops[narrow ? CM_FLOAT : x->type],
                      .type = x->type,
                      .narrow = narrow,
                      .x = x->data,
                      .y = call->out[0]->data,
                      .plan = &plan};
    if (!job.loops->start)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    if (cm_tensor_count(call->out[0]) > 0)
        reduce_all(&job);
    return CM_OK;
}
