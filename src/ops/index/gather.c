/* Gather: slices along an axis, chosen by indices. */
// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"
#include "graph/node_formula.h"
#include "ops/index/index.h"
#include "tensor/layout.h"

#include <stdatomic.h>

/* Shape arithmetic: an element, or several, of a known list. */
static void infer_known(struct cm_infer *in)
{
    struct cm_known data, indices;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    if ((dtype != CM_INT64 && dtype != CM_INT32) || cm_infer_type(in, 0)->rank != 1 ||
        !cm_infer_known(in, 0, &data) || !cm_infer_known(in, 1, &indices))
        return;
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, indices.count);
    const int64_t limit = (int64_t)data.count;
    for (size_t i = 0; i < indices.count; i++) {
        const struct cm_quantity at = indices.items[i];
        if (at.is_number && at.number >= -limit && at.number < limit)
            items[i] = data.items[at.number < 0 ? at.number + limit : at.number];
    }
    cm_infer_set_known(in, 0, indices.rank, indices.count, items);
}

static enum cm_status gather_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *indices = cm_infer_type(in, 1);
    struct cm_dim dims[2 * CM_MAX_RANK];
    int axis, rank = 0;

    if (x->rank == CM_RANK_UNKNOWN || indices->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, rank, dims));
    infer_known(in);
    return CM_OK;
}

static enum cm_status gather_prepare(struct cm_call *call)
{
    struct cm_lanes *lanes = cm_call_state(call, sizeof *lanes);
    const struct cm_shape *x = &call->in[0]->shape;
    CM_TRY(cm_lanes_read(call, x, lanes));
    if (lanes->inner > 1) /* slices are copied as bytes, so a table may stay where it is */
        cm_call_want_layout(call, 0, &cm_unaligned);
    return CM_OK;
}

/* The slices at a block of indices, from one part of the outer axes. */
static void copy_slices(const struct cm_lanes *lanes, size_t width, int64_t count,
                        const int64_t *at, const char *from, char *to)
{
    const size_t slice = (size_t)lanes->inner * width;
    if (lanes->inner == 1) {
        cm_index_gather(width, count, from, at, to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * slice, from + (size_t)at[i] * slice, slice);
}

enum { PIECE = 1 << 16 }; /* bytes worth a thread */

/* Blocks of indices, counted through all parts of the outer axes. */
struct gathering {
    const struct cm_lanes *lanes;
    const struct cm_tensor *x, *indices;
    char *to;
    int64_t count, block, blocks; /* indices; of a block; blocks of one part */
    _Atomic bool failed;
};

static void gather_blocks(void *arg, int64_t begin, int64_t end)
{
    struct gathering *job = arg;
    const struct cm_lanes *lanes = job->lanes;
    const size_t width = cm_dtype_size(job->x->type), slice = (size_t)lanes->inner * width;
    int64_t at[CM_INDEX_BLOCK];
    for (int64_t b = begin; b < end; b++) {
        const int64_t outer = b / job->blocks, done = b % job->blocks * job->block;
        const int64_t n = job->count - done < job->block ? job->count - done : job->block;
        if (!cm_index_places(job->indices, done, n, lanes->length, at)) {
            atomic_store_explicit(&job->failed, true, memory_order_relaxed);
            return;
        }
        copy_slices(lanes, width, n, at,
                    (const char *)job->x->data + (size_t)(outer * lanes->length) * slice,
                    job->to + (size_t)(outer * job->count + done) * slice);
    }
}

static enum cm_status gather_run(struct cm_call *call)
{
    const struct cm_lanes *lanes = call->state;
    const int64_t slice = lanes->inner * (int64_t)cm_dtype_size(call->in[0]->type);
    struct gathering job = {.lanes = lanes,
                            .x = call->in[0],
                            .indices = call->in[1],
                            .to = call->out[0]->data,
                            .count = cm_tensor_count(call->in[1]),
                            .block = CM_INDEX_BLOCK};

    CM_TRY(cm_index_movable(call, call->in[0]));
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK;
    if (slice > PIECE / CM_INDEX_BLOCK)
        job.block = slice < PIECE ? PIECE / slice : 1;
    job.blocks = (job.count + job.block - 1) / job.block;
    const int64_t bytes = job.block * slice;
    cm_parallel(lanes->outer * job.blocks, bytes < PIECE / 2 ? PIECE / bytes : 1, gather_blocks,
                &job);
    return job.failed ? cm_index_fail(call, job.indices, lanes->length) : CM_OK;
}

/* The indices as one axis of int64, and the gradient with its index axes flattened into one the
 * same way. */
static enum cm_status gather_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0), indices = cm_grad_input(g, 1);
    int rank, axis;
    CM_TRY(cm_index_rank(g, x, &rank));
    if (!cm_axis_fix(cm_node_int(g->node, "axis"), rank, &axis))
        return cm_builder_fail(&g->build, CM_BAD_MODEL, "axis is out of range for rank %d", rank);
    const struct cm_str text =
        cm_arena_printf(cm_builder_arena(&g->build),
                        "x, indices, dy: shape = Shape(x); before = Slice(shape, [0], [%d]);"
                        "after = Slice(shape, [%d], [%d]); size = Reshape(Size(indices), [-1]);"
                        "slices = Reshape<allowzero=1>(dy, Concat<axis=0>(before, size, after));"
                        "flat = int64(Reshape(indices, [-1])) -> flat, slices",
                        axis, axis + 1, rank);
    cm_value results[2];
    cm_emit_formulas(g, results, cm_str_text(text), x, indices, cm_grad_incoming(g, 0));
    return cm_grad_set(g, 0, cm_index_put_slices(g, x, axis, results[0], results[1]));
}

static const struct cm_indexing gather_indexing = {.indices = 1, .table = 0, .axis = "axis"};

CM_OP(Gather, .infer = gather_infer, .prepare = gather_prepare, .run = gather_run,
      .grad = gather_grad, .cost.work = cm_work_linear, .values.indexing = &gather_indexing,
      .values.picked_from = 1, .layer.weights = CM_OPERAND(0), .layer.entry = CM_ENTERS_AS_TABLE);
