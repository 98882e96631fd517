/* The Reduce operators of all types they have. Elements are folded into totals that are wider than
 * they are, block by block of results, in parts where there are few results and many elements;
 * reduce_loops.c has the loops. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/reduce/reduce_loops.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/tile.h"
#include "graph/backend.h"
#include "tensor/half.h"

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

enum {
    BLOCK = 256,     /* results whose totals are gathered together */
    PIECE = 1 << 15, /* elements of a reduced run at a time */
    GRAIN = 1 << 16, /* elements worth a thread */
    SHORT = 16,      /* elements of a reduced run that is turned before it is folded */
    UNITS = 64,      /* that work is cut into when there are few blocks of results */
};

/* A block of totals. The widest total is two doubles. */
union totals {
    uint64_t align;
    char bytes[BLOCK * 2 * sizeof(double)];
};

struct job {
    const struct cm_reduce_loops *loops;
    bool in_parts; /* few totals of many elements may be gathered so */
    enum cm_dtype type;
    bool narrow;
    const char *x;
    char *y;
    const struct plan *plan;
    int64_t results;      /* of a line */
    int64_t blocks;       /* that a line is cut into */
    int64_t pieces;       /* of a reduced run */
    int64_t parts, items; /* each block's items, pieces or rows, are gathered in so many parts */
    union totals *totals; /* of all parts of all blocks, when there are several */
};

/* Folds count elements from place at on into totals[0]. */
static void fold_run(const struct job *job, int64_t at, int64_t count, void *totals)
{
    if (!job->narrow) {
        job->loops->along(count, job->x + (size_t)at * cm_dtype_size(job->type), totals);
        return;
    }
    float block[BLOCK];
    for (int64_t done = 0; done < count; done += BLOCK) {
        const int64_t n = count - done < BLOCK ? count - done : BLOCK;
        cm_narrow_load(job->type, job->x, at + done, n, block);
        job->loops->along(n, block, totals);
    }
}

/* Folds rows of count elements, each into its own total. */
static void fold_rows(const struct job *job, int64_t at, int64_t rows, int64_t stride,
                      int64_t count, void *totals)
{
    if (!job->narrow) {
        job->loops->across(count, rows, stride, job->x + (size_t)at * cm_dtype_size(job->type),
                           totals);
        return;
    }
    float block[BLOCK];
    for (int64_t r = 0; r < rows; r++) {
        cm_narrow_load(job->type, job->x, at + r * stride, count, block);
        job->loops->across(count, 1, 0, block, totals);
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

/* Where the elements of line `line` along axes begin. */
static int64_t place_of(const struct axes *axes, int64_t line)
{
    int64_t at = 0;
    for (int i = 0; i + 1 < axes->rank; i++) {
        at += line % axes->dims[i] * axes->strides[i];
        line /= axes->dims[i];
    }
    return axes->rank > 0 ? at + line * axes->strides[axes->rank - 1] : at;
}

/* Items [begin, end) of a block of results whose elements begin at place from: pieces of reduced
 * runs into one total, or rows of kept elements. */
static void gather_items(const struct job *job, int64_t from, int64_t count, int64_t begin,
                         int64_t end, void *totals)
{
    const struct axes *reduced = &job->plan->reduced;
    for (int64_t item = begin; item < end;) {
        if (job->plan->run_is_reduced && job->pieces == 1) {
            fold_run(job, from + place_of(reduced, item), job->plan->run, totals);
            item++;
            continue;
        }
        if (job->plan->run_is_reduced) {
            const int64_t done = item % job->pieces * PIECE, left = job->plan->run - done;
            fold_run(job, from + place_of(reduced, item / job->pieces) + done,
                     left < PIECE ? left : PIECE, totals);
            item++;
            continue;
        }
        const int64_t length = reduced->rank > 0 ? reduced->dims[0] : 1;
        const int64_t left = length - item % length;
        const int64_t rows = left < end - item ? left : end - item;
        fold_rows(job, from + place_of(reduced, item), rows,
                  reduced->rank > 0 ? reduced->strides[0] : 0, count, totals);
        item += rows;
    }
}

/* Block number `block`: where its elements begin, its first result, how many there are. */
struct stretch {
    int64_t from, to, count;
};

static struct stretch stretch_of(const struct job *job, int64_t block)
{
    const bool whole = job->blocks == 1; /* which spares divisions, where lines are short */
    const int64_t line = whole ? block : block / job->blocks;
    const int64_t at = whole ? 0 : block % job->blocks * BLOCK;
    return (struct stretch){place_of(&job->plan->kept, line) + at, line * job->results + at,
                            job->results - at < BLOCK ? job->results - at : BLOCK};
}

static void reduce_blocks(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    for (int64_t block = begin; block < end; block++) {
        const struct stretch stretch = stretch_of(job, block);
        union totals totals;
        job->loops->start(stretch.count, &totals);
        gather_items(job, stretch.from, stretch.count, 0, job->items, &totals);
        finish(job, stretch.to, stretch.count, &totals);
    }
}

/* Neighbouring short runs: turned, so that they are rows of a block of results. */
static void reduce_short_runs(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const int64_t run = job->plan->run, all = job->plan->kept.count;
    const size_t width = job->narrow ? sizeof(float) : cm_dtype_size(job->type);
    for (int64_t block = begin; block < end; block++) {
        const int64_t at = block * BLOCK, count = all - at < BLOCK ? all - at : BLOCK;
        const void *runs = job->x + (size_t)(at * run) * width;
        union totals totals;
        double turned[SHORT * BLOCK];
        float floats[SHORT * BLOCK];
        if (job->narrow) {
            cm_narrow_load(job->type, job->x, at * run, count * run, floats);
            runs = floats;
        }
        cm_tile_transpose(width, count, run, runs, run, turned, BLOCK);
        job->loops->start(count, &totals);
        job->loops->across(count, run, BLOCK, turned, &totals);
        finish(job, at, count, &totals);
    }
}

/* The same in parts, each with totals of its own. */
static void gather_parts(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct stretch stretch = stretch_of(job, unit / job->parts);
        const int64_t part = unit % job->parts, each = job->items / job->parts;
        const int64_t more = job->items % job->parts; /* the first ones are longer by one */
        const int64_t first = part * each + (part < more ? part : more);
        union totals *totals = &job->totals[unit];
        job->loops->start(stretch.count, totals);
        gather_items(job, stretch.from, stretch.count, first, first + each + (part < more), totals);
    }
}

static void join_parts(const struct job *job, int64_t blocks)
{
    for (int64_t block = 0; block < blocks; block++) {
        const struct stretch stretch = stretch_of(job, block);
        union totals *totals = &job->totals[block * job->parts];
        for (int64_t part = 1; part < job->parts; part++)
            job->loops->join(stretch.count, totals + part, totals);
        finish(job, stretch.to, stretch.count, totals);
    }
}

/* In how many parts the items of each block are gathered; by shapes alone. */
static int64_t count_parts(const struct job *job, int64_t blocks, int64_t each)
{
    int64_t parts = blocks < UNITS ? UNITS / blocks : 1;
    if (parts > job->items)
        parts = job->items;
    if (parts > each / GRAIN)
        parts = each / GRAIN;
    return parts > 1 && job->in_parts ? parts : 1;
}

/* Two threads must not write into one byte, which results of packed types may share. */
static int64_t grain_of(const struct job *job, int64_t blocks, int64_t each)
{
    if (cm_dtype_info(job->type)->bits % 8 != 0)
        return blocks;
    return each < GRAIN ? GRAIN / each : 1;
}

static void reduce_all(struct job *job)
{
    const struct plan *plan = job->plan;
    if (plan->run_is_reduced && plan->run <= SHORT && plan->reduced.rank == 0 &&
        plan->kept.rank == 1 && plan->terms > 0) {
        const int64_t blocks = (plan->kept.count + BLOCK - 1) / BLOCK;
        cm_parallel(blocks, grain_of(job, blocks, plan->run * BLOCK), reduce_short_runs, job);
        return;
    }
    job->results = plan->run_is_reduced ? 1 : plan->run;
    job->blocks = (job->results + BLOCK - 1) / BLOCK;
    job->pieces = plan->run_is_reduced ? (plan->run + PIECE - 1) / PIECE : 1;
    job->items = plan->reduced.count * job->pieces;
    const int64_t blocks = plan->kept.count * job->blocks;
    const int64_t width = job->results < BLOCK ? job->results : BLOCK;
    int64_t each = 1; /* elements of a block */
    if (!cm_dim_mul(plan->terms > 0 ? plan->terms : 1, width, &each))
        each = INT64_MAX;
    job->parts = count_parts(job, blocks, each);
    if (job->parts > 1) {
        cm_parallel(blocks * job->parts, 1, gather_parts, job);
        join_parts(job, blocks);
        return;
    }
    cm_parallel(blocks, grain_of(job, blocks, each), reduce_blocks, job);
}

/* What runs, once bound. */
struct reduction {
    const struct cm_reduce_loops *loops;
    bool narrow; /* elements come and results leave as floats */
    bool noop;   /* without axes: nothing is reduced */
};

static struct reduction reduction_of(const struct cm_call *call)
{
    const struct cm_reduce_loops *loops = cm_reduce_loops(call->node->op_type);
    const enum cm_dtype type = call->in[0]->type;
    const bool narrow = cm_dtype_is_narrow(type);
    return (struct reduction){&loops[narrow ? CM_FLOAT : type], narrow,
                              cm_node_int(call->node, "noop_with_empty_axes") != 0};
}

static bool accepts(struct cm_call *call)
{
    return reduction_of(call).loops->start || cm_call_decline_type(call, call->in[0]);
}

static enum cm_status prepare(struct cm_call *call)
{
    struct reduction *reduction = cm_call_state(call, sizeof *reduction);
    *reduction = reduction_of(call);
    if (cm_tensor_count(call->in[0]) / 2 >= GRAIN) /* else nothing is gathered in parts */
        cm_call_scratch(call, UNITS * sizeof(union totals));
    return CM_OK;
}

static enum cm_status run(struct cm_call *call)
{
    const struct reduction *reduction = call->state;
    const struct cm_tensor *x = call->in[0];
    bool reduced[CM_MAX_RANK];
    int64_t wrong = 0;
    if (!cm_tensor_reduced_axes(call->n_in > 1 ? call->in[1] : NULL, reduction->noop, x->shape.rank,
                                reduced, &wrong))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "axis %lld is out of range for rank %d, or listed twice",
                            (long long)wrong, x->shape.rank);
    struct plan plan;
    make_plan(&plan, &x->shape, reduced);
    struct job job = {.loops = reduction->loops,
                      .in_parts = reduction->narrow || x->type == CM_FLOAT,
                      .type = x->type,
                      .narrow = reduction->narrow,
                      .x = x->data,
                      .y = call->out[0]->data,
                      .plan = &plan,
                      .totals = call->scratch};
    if (cm_tensor_count(call->out[0]) > 0)
        reduce_all(&job);
    return CM_OK;
}

#define REDUCE .label = "blocks of totals", .accepts = accepts, .prepare = prepare, .run = run
CM_KERNEL(cpu, ReduceSum, REDUCE);
CM_KERNEL(cpu, ReduceMean, REDUCE);
CM_KERNEL(cpu, ReduceProd, REDUCE);
CM_KERNEL(cpu, ReduceL1, REDUCE);
CM_KERNEL(cpu, ReduceL2, REDUCE);
CM_KERNEL(cpu, ReduceSumSquare, REDUCE);
CM_KERNEL(cpu, ReduceLogSum, REDUCE);
CM_KERNEL(cpu, ReduceLogSumExp, REDUCE);
CM_KERNEL(cpu, ReduceMax, REDUCE);
CM_KERNEL(cpu, ReduceMin, REDUCE);
