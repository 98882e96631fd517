/* GatherElements and ScatterElements: one index per element, along one axis. */
// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"

#include <stdatomic.h>

/* The place of the index element (i0, .., ir) is (i0, .., index, .., ir): its other coordinates
 * stay. */
struct places {
    int axis, rank;
    int64_t limit; /* data's size along axis */
    int64_t step;  /* from one element of the innermost axis to the next; 0 when that is the axis */
    int64_t row, count;
    int64_t dims[CM_MAX_RANK], strides[CM_MAX_RANK]; /* dims of the indices, strides of the data */
    struct cm_join join;
};

static enum cm_status places_init(struct cm_call *call, struct places *places)
{
    const struct cm_shape *data = &call->in[0]->shape, *indices = &call->in[1]->shape;
    if (indices->rank != data->rank)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "indices have rank %d, data has rank %d",
                            indices->rank, data->rank);
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), data->rank, &places->axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", data->rank);
    for (int i = 0; i < data->rank; i++)
        if (i != places->axis && indices->dims[i] > data->dims[i])
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "indices have %lld along axis %d, data has %lld",
                                (long long)indices->dims[i], i, (long long)data->dims[i]);
    places->rank = data->rank;
    places->limit = data->dims[places->axis];
    places->row = indices->dims[data->rank - 1];
    places->count = cm_shape_elements(indices);
    places->step = places->axis != data->rank - 1;
    memcpy(places->dims, indices->dims, sizeof places->dims);
    cm_shape_strides(data, places->strides);
    return CM_OK;
}

/* Turns n indices into places in the data; base is where the row's other coordinates lead. */
static void to_places(const struct places *places, int64_t base, int64_t first, int64_t n,
                      int64_t *at)
{
    const int64_t stride = places->strides[places->axis];
    if (places->step == 0) { /* the axis is the last one */
        for (int64_t i = 0; i < n; i++)
            at[i] += base;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        at[i] = base + first + i + at[i] * stride;
}

/* From the beginning of one row of the indices to that of the next. */
static int64_t next_row(const struct places *places, int64_t *index, int64_t base)
{
    for (int i = places->rank - 2; i >= 0; i--) {
        const int64_t stride = i == places->axis ? 0 : places->strides[i];
        base += stride;
        if (++index[i] < places->dims[i])
            return base;
        base -= stride * places->dims[i];
        index[i] = 0;
    }
    return base;
}

/* What is done with a block of places: elements first .. first + n of the indices' order. */
typedef void visit_fn(struct cm_call *call, int64_t first, int64_t n, const int64_t *at);

/* Rows [begin, end) of the indices; true when an index is out of range. */
static bool visit_rows(struct cm_call *call, int64_t begin, int64_t end, visit_fn *visit)
{
    const struct places *places = call->state;
    int64_t index[CM_MAX_RANK] = {0}, base = 0, at[CM_INDEX_BLOCK];
    int64_t rest = begin;
    for (int i = places->rank - 2; i >= 0; i--) {
        index[i] = rest % places->dims[i];
        rest /= places->dims[i];
        base += i == places->axis ? 0 : index[i] * places->strides[i];
    }
    for (int64_t row = begin; row < end; row++) {
        for (int64_t done = 0; done < places->row; done += CM_INDEX_BLOCK) {
            const int64_t left = places->row - done, first = row * places->row + done;
            const int64_t n = left < CM_INDEX_BLOCK ? left : CM_INDEX_BLOCK;
            if (!cm_index_places(call->in[1], first, n, places->limit, at))
                return true;
            to_places(places, base, done, n, at);
            visit(call, first, n, at);
        }
        base = next_row(places, index, base);
    }
    return false;
}

static void gather_block(struct cm_call *call, int64_t first, int64_t n, const int64_t *at)
{
    const size_t width = cm_dtype_size(call->out[0]->type);
    cm_index_gather(width, n, call->in[0]->data, at,
                    (char *)call->out[0]->data + (size_t)first * width);
}

/* ---- GatherElements ---- */

static enum cm_status gather_elements_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *indices = cm_infer_type(in, 1);
    int axis;
    if (x->rank != CM_RANK_UNKNOWN)
        CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    if (x->rank == CM_RANK_UNKNOWN || indices->rank != CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, indices->rank, indices->dims);
    struct cm_dim dims[CM_MAX_RANK]; /* the ranks are equal */
    for (int i = 0; i < x->rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

static enum cm_status gather_elements_prepare(struct cm_call *call)
{
    struct places *places = cm_call_state(call, sizeof *places);
    return places_init(call, places);
}

/* Rows of the indices, which may be read in any order. */
struct gathering {
    struct cm_call *call;
    _Atomic bool failed;
};

static void gather_rows(void *arg, int64_t begin, int64_t end)
{
    struct gathering *job = arg;
    if (visit_rows(job->call, begin, end, gather_block))
        atomic_store_explicit(&job->failed, true, memory_order_relaxed);
}

enum { GRAIN = 1 << 14 }; /* elements worth a thread */

static enum cm_status gather_elements_run(struct cm_call *call)
{
    const struct places *places = call->state;
    struct gathering job = {.call = call};
    CM_TRY(cm_index_movable(call, call->in[0]));
    if (places->count == 0)
        return CM_OK;
    cm_parallel(places->count / places->row, places->row < GRAIN ? GRAIN / places->row : 1,
                gather_rows, &job);
    return job.failed ? cm_index_fail(call, call->in[1], places->limit) : CM_OK;
}

CM_GRADIENT(gather_elements_grad,
            "zeros = Expand(like(data, 0), Shape(data));"
            "d_data = ScatterElements<reduction='add', axis>(zeros, indices, d_output)")

static const struct cm_indexing elements_indexing = {.indices = 1, .table = 0, .axis = "axis"};

CM_OP(GatherElements, .infer = gather_elements_infer, .prepare = gather_elements_prepare,
      .run = gather_elements_run, .grad = gather_elements_grad, .cost.work = cm_work_linear,
      .values.indexing = &elements_indexing, .values.picked_from = 1);

/* ---- ScatterElements ---- */

static enum cm_status scatter_elements_prepare(struct cm_call *call)
{
    struct places *places = cm_call_state(call, sizeof *places);
    if (!cm_shape_equal(&call->in[1]->shape, &call->in[2]->shape))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "indices and updates have different shapes");
    CM_TRY(places_init(call, places));
    return cm_join_init(call, &places->join);
}

static void join_block(struct cm_call *call, int64_t first, int64_t n, const int64_t *at)
{
    const struct places *places = call->state;
    cm_join_at(&places->join, n, call->in[2]->data, first, at, call->out[0]->data);
}

static enum cm_status scatter_elements_run(struct cm_call *call)
{
    const struct places *places = call->state;
    CM_TRY(cm_scatter_begin(call));
    if (places->count > 0 && visit_rows(call, 0, places->count / places->row, join_block))
        return cm_index_fail(call, call->in[1], places->limit);
    return CM_OK;
}

CM_OP(ScatterElements, .infer = cm_scatter_infer, .prepare = scatter_elements_prepare,
      .run = scatter_elements_run, .grad = cm_scatter_grad, .memory.share = cm_share_first,
      .cost.work = cm_work_linear, .values.indexing = &elements_indexing);
