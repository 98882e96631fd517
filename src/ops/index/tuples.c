/* GatherND and ScatterND: each index is a tuple that leads to a slice of the data. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"

/* Tuples of `length` indices into the axes of the data that follow the batch axes; what is left of
 * the axes is the slice. */
struct tuples {
    int length;
    int64_t count;          /* tuples in one batch */
    int64_t batches, batch; /* how many, and elements of the data in each */
    int64_t slice;          /* elements */
    int64_t dims[CM_MAX_RANK], strides[CM_MAX_RANK]; /* of the axes that the tuples lead along */
    struct cm_join join;
};

static enum cm_status tuples_init(struct cm_call *call, struct tuples *tuples, int batch_dims)
{
    const struct cm_shape *data = &call->in[0]->shape, *indices = &call->in[1]->shape;
    const int q = indices->rank, r = data->rank;
    if (q < 1 || r < 1 || batch_dims < 0 || batch_dims >= q || batch_dims > r)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "data of rank %d and indices of rank %d do not allow batch_dims %d", r,
                            q, batch_dims);
    if (indices->dims[q - 1] > r - batch_dims)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "the last axis of indices has %lld elements, data has only %d axes",
                            (long long)indices->dims[q - 1], r - batch_dims);
    for (int i = 0; i < batch_dims; i++)
        if (data->dims[i] != indices->dims[i])
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "batch axis %d has %lld in data and %lld in indices", i,
                                (long long)data->dims[i], (long long)indices->dims[i]);
    int64_t strides[CM_MAX_RANK];
    cm_shape_strides(data, strides);
    tuples->length = (int)indices->dims[q - 1];
    tuples->batches = cm_shape_span(data, 0, batch_dims);
    tuples->batch = cm_shape_span(data, batch_dims, r);
    tuples->count = cm_shape_span(indices, batch_dims, q - 1);
    tuples->slice = cm_shape_span(data, batch_dims + tuples->length, r);
    for (int i = 0; i < tuples->length; i++) {
        tuples->dims[i] = data->dims[batch_dims + i];
        tuples->strides[i] = strides[batch_dims + i];
    }
    return CM_OK;
}

/* Where the slices of n tuples begin, in elements; tuple is the number of the first one. */
static enum cm_status load_places(struct cm_call *call, const struct tuples *tuples, int64_t tuple,
                                  int64_t base, int64_t n, int64_t *at)
{
    const int64_t *indices = (const int64_t *)call->in[1]->data + tuple * tuples->length;
    for (int64_t i = 0; i < n; i++) {
        at[i] = base;
        for (int k = 0; k < tuples->length; k++) {
            const int64_t index = *indices++, limit = tuples->dims[k];
            if (index < -limit || index >= limit)
                return cm_call_fail(call, CM_BAD_ARGUMENT,
                                    "index %lld is out of range for axis %d of %lld elements",
                                    (long long)index, k, (long long)limit);
            at[i] += (index < 0 ? index + limit : index) * tuples->strides[k];
        }
    }
    return CM_OK;
}

/* What is done with a block of slices, the first of which is number `first` of all. */
typedef void visit_fn(struct cm_call *call, int64_t first, int64_t n, const int64_t *at);

static enum cm_status visit_slices(struct cm_call *call, visit_fn *visit)
{
    const struct tuples *tuples = call->state;
    int64_t at[CM_INDEX_BLOCK];
    if (tuples->slice == 0 || tuples->count == 0)
        return CM_OK;
    for (int64_t batch = 0; batch < tuples->batches; batch++) {
        const int64_t first = batch * tuples->count;
        for (int64_t done = 0; done < tuples->count; done += CM_INDEX_BLOCK) {
            const int64_t left = tuples->count - done;
            const int64_t n = left < CM_INDEX_BLOCK ? left : CM_INDEX_BLOCK;
            CM_TRY(load_places(call, tuples, first + done, batch * tuples->batch, n, at));
            visit(call, first + done, n, at);
        }
    }
    return CM_OK;
}

/* ---- GatherND ---- */

static enum cm_status gather_nd_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *indices = cm_infer_type(in, 1);
    const int64_t batch = cm_node_int(in->node, "batch_dims");
    struct cm_dim dims[2 * CM_MAX_RANK];
    int rank = 0;
    if (x->rank == CM_RANK_UNKNOWN || indices->rank == CM_RANK_UNKNOWN ||
        (indices->rank > 0 && !cm_dim_known(indices->dims[indices->rank - 1])))
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (indices->rank < 1 || x->rank < 1 || batch < 0 || batch >= indices->rank || batch > x->rank)
        return cm_infer_fail(in,
                             "data of rank %d and indices of rank %d do not allow batch_dims %lld",
                             x->rank, indices->rank, (long long)batch);
    const int64_t length = indices->dims[indices->rank - 1].value;
    if (length > x->rank - batch)
        return cm_infer_fail(in,
                             "the last axis of indices has %lld elements, data has only %d axes",
                             (long long)length, x->rank - (int)batch);
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = (int)(batch + length); i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

static enum cm_status gather_nd_prepare(struct cm_call *call)
{
    struct tuples *tuples = cm_call_state(call, sizeof *tuples);
    const int64_t batch_dims = cm_node_int(call->node, "batch_dims");
    return tuples_init(call, tuples,
                       batch_dims >= 0 && batch_dims <= CM_MAX_RANK ? (int)batch_dims : -1);
}

static void gather_slices(struct cm_call *call, int64_t first, int64_t n, const int64_t *at)
{
    const struct tuples *tuples = call->state;
    const size_t width = cm_dtype_size(call->in[0]->type), slice = (size_t)tuples->slice * width;
    const char *from = call->in[0]->data;
    char *to = (char *)call->out[0]->data + (size_t)first * slice;
    if (tuples->slice == 1) {
        cm_index_gather(width, n, from, at, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * slice, from + (size_t)at[i] * width, slice);
}

static enum cm_status gather_nd_run(struct cm_call *call)
{
    CM_TRY(cm_index_movable(call, call->in[0]));
    return visit_slices(call, gather_slices);
}

/* Tuples that begin with their place among the batches, so that none are left: ScatterND knows no
 * batch axes. */
static cm_value with_batch_indices(struct cm_grad *g, cm_value indices, int rank, int batch_dims)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value shape = cm_emit(g, "Shape", indices);
    const cm_value outer =
        cm_emit(g, "Slice", shape, cm_emit_int64s(g, 0), cm_emit_int64s(g, rank - 1));
    const cm_value column = cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                         outer, cm_emit_int64s(g, 1));
    cm_value parts[CM_MAX_RANK + 1];
    for (int b = 0; b < batch_dims; b++) {
        const cm_value size = cm_emit(g, "Gather", shape, cm_build_int64(&g->build, b));
        const cm_value range =
            cm_emit(g, "Range", cm_build_int64(&g->build, 0), size, cm_build_int64(&g->build, 1));
        int64_t form[CM_MAX_RANK];
        for (int i = 0; i < rank; i++)
            form[i] = i == b ? -1 : 1;
        const cm_value laid =
            cm_emit(g, "Reshape", range, cm_build_int64s(&g->build, (size_t)rank, form));
        parts[b] = cm_emit(g, "Expand", laid, column);
    }
    parts[batch_dims] = indices;
    return cm_build(&g->build,
                    &(struct cm_emission){.op = "Concat",
                                          .inputs = parts,
                                          .n_inputs = (size_t)batch_dims + 1,
                                          CM_ATTRIBUTES(cm_attr_int(arena, "axis", -1))});
}

static enum cm_status gather_nd_grad(struct cm_grad *g)
{
    const int64_t batch_dims = cm_node_int(g->node, "batch_dims");
    cm_value indices = cm_grad_input(g, 1);
    int rank;
    if (batch_dims > 0) {
        CM_TRY(cm_index_rank(g, indices, &rank));
        indices = with_batch_indices(g, indices, rank, (int)batch_dims);
    }
    struct cm_arena *arena = cm_builder_arena(&g->build);
    return cm_grad_set(
        g, 0,
        cm_emit_with(g, "ScatterND", CM_ATTRIBUTES(cm_attr_str(arena, "reduction", cm_str("add"))),
                     cm_index_zeros(g, cm_grad_input(g, 0)), indices, cm_grad_incoming(g, 0)));
}

static const struct cm_indexing tuples_indexing = {.indices = 1, .table = 0};

CM_OP(GatherND, .infer = gather_nd_infer, .prepare = gather_nd_prepare, .run = gather_nd_run,
      .grad = gather_nd_grad, .cost.work = cm_work_linear, .values.indexing = &tuples_indexing,
      .values.picked_from = 1);

/* ---- ScatterND ---- */

/* The shape of the updates is that of what GatherND would read. */
static bool updates_fit(const struct cm_call *call, const struct tuples *tuples)
{
    const struct cm_shape *data = &call->in[0]->shape, *indices = &call->in[1]->shape;
    const struct cm_shape *updates = &call->in[2]->shape;
    const int lead = indices->rank - 1, tail = data->rank - tuples->length;
    if (updates->rank != lead + tail)
        return false;
    for (int i = 0; i < lead; i++)
        if (updates->dims[i] != indices->dims[i])
            return false;
    for (int i = 0; i < tail; i++)
        if (updates->dims[lead + i] != data->dims[tuples->length + i])
            return false;
    return true;
}

static enum cm_status scatter_nd_prepare(struct cm_call *call)
{
    struct tuples *tuples = cm_call_state(call, sizeof *tuples);
    CM_TRY(tuples_init(call, tuples, 0));
    if (!updates_fit(call, tuples))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "the shape of the updates does not follow from data and indices");
    return cm_join_init(call, &tuples->join);
}

/* In the order of the tuples: so each element is joined with its updates in their order. */
static void scatter_slices(struct cm_call *call, int64_t first, int64_t n, const int64_t *at)
{
    const struct tuples *tuples = call->state;
    int64_t places[CM_INDEX_BLOCK];
    if (tuples->slice == 1) {
        cm_join_at(&tuples->join, n, call->in[2]->data, first, at, call->out[0]->data);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t done = 0; done < tuples->slice; done += CM_INDEX_BLOCK) {
            const int64_t left = tuples->slice - done;
            const int64_t some = left < CM_INDEX_BLOCK ? left : CM_INDEX_BLOCK;
            for (int64_t k = 0; k < some; k++)
                places[k] = at[i] + done + k;
            cm_join_at(&tuples->join, some, call->in[2]->data, (first + i) * tuples->slice + done,
                       places, call->out[0]->data);
        }
}

static enum cm_status scatter_nd_run(struct cm_call *call)
{
    CM_TRY(cm_scatter_begin(call));
    return visit_slices(call, scatter_slices);
}

CM_OP(ScatterND, .infer = cm_scatter_infer, .prepare = scatter_nd_prepare, .run = scatter_nd_run,
      .grad = cm_scatter_grad, .memory.share = cm_share_first, .cost.work = cm_work_linear,
      .values.indexing = &tuples_indexing);
