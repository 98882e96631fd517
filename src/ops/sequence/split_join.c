/* SplitToSequence and ConcatFromSequence: between a tensor and the pieces of it along one axis. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/sequence.h"

#include "base/number.h"
#include "ops/sequence/sequence_grad.h"
#include "tensor/bits.h"

/* ---- SplitToSequence ---- */

/* The length that all pieces have; unknown when they differ, or may. */
static struct cm_dim piece_length(struct cm_infer *in, struct cm_dim whole)
{
    const struct cm_type *split = cm_infer_type(in, 1);
    struct cm_known lengths;
    if (!split)
        return CM_DIM(1);
    if (split->rank == CM_RANK_UNKNOWN || !cm_infer_known(in, 1, &lengths) || !lengths.count)
        return CM_DIM_ANY;
    const struct cm_dim first = cm_quantity_dim(lengths.items[0]);
    if (split->rank == 0) /* the last piece takes what is left */
        return cm_dim_known(whole) && first.value > 0 && whole.value % first.value == 0
                   ? first
                   : CM_DIM_ANY;
    for (size_t i = 1; i < lengths.count; i++)
        if (!cm_dim_same(first, cm_quantity_dim(lengths.items[i])))
            return CM_DIM_ANY;
    return first;
}

static enum cm_status split_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *split = cm_infer_type(in, 1);
    const bool drop = !split && !cm_node_int(in->node, "keepdims");
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known lengths;
    int axis, rank = 0;
    CM_TRY(cm_infer_rank(in, 1, 0, 1));
    if (split && split->rank == 0 && cm_infer_known(in, 1, &lengths) &&
        lengths.items[0].is_number && lengths.items[0].number < 1)
        return cm_infer_fail(in, "pieces would be %lld long, expected 1 or more",
                             (long long)lengths.items[0].number);
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_sequence_set(in, 0, cm_type_tensor(in->arena, x->dtype, CM_RANK_UNKNOWN, NULL));
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), x->rank, false, &axis));
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dims[i];
        else if (!drop)
            dims[rank++] = piece_length(in, x->dims[i]);
    }
    return cm_sequence_set(in, 0, cm_type_tensor(in->arena, x->dtype, rank, dims));
}

/* How an axis is cut: into pieces of one length, the last one shorter, or of lengths that a list
 * gives. */
struct cuts {
    const struct cm_tensor *list; /* NULL: one length */
    int64_t length, count;
};

static enum cm_status read_cuts(struct cm_call *call, int64_t whole, struct cuts *out)
{
    const struct cm_tensor *split = call->n_in > 1 ? call->in[1] : NULL;
    *out = (struct cuts){.length = 1, .count = whole};
    if (!split)
        return CM_OK;
    if (split->shape.rank == 0) {
        CM_TRY(cm_call_int(call, 1, &out->length));
        if (out->length < 1)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "split is %lld, must be at least 1",
                                (long long)out->length);
        out->count = whole / out->length + (whole % out->length != 0);
        return CM_OK;
    }
    out->list = split;
    out->count = cm_tensor_count(split);
    int64_t sum = 0;
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t length = cm_tensor_int(split, i);
        if (length < 0 || !cm_dim_add(sum, length, &sum))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "split contains %lld, must not be negative",
                                (long long)length);
    }
    if (sum != whole)
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "the lengths in split sum up to %lld, the axis has %lld",
                            (long long)sum, (long long)whole);
    return CM_OK;
}

/* `length` slices along axis, from slice `at` on, as a tensor of its own. */
static enum cm_status take_piece(const struct cm_tensor *x, int axis, int64_t at, int64_t length,
                                 bool drop, struct cm_datum *out, struct cm_error *err)
{
    const int64_t outer = cm_shape_span(&x->shape, 0, axis);
    const int64_t inner = cm_shape_span(&x->shape, axis + 1, x->shape.rank);
    struct cm_shape shape = x->shape;
    shape.dims[axis] = length;
    if (drop) {
        shape.rank--;
        memmove(&shape.dims[axis], &shape.dims[axis + 1],
                (size_t)(shape.rank - axis) * sizeof shape.dims[0]);
    }
    CM_TRY(cm_tensor_new(x->type, &shape, &out->tensor, err));
    out->kind = CM_KIND_TENSOR;
    for (int64_t i = 0; i < outer; i++)
        cm_elements_copy(x->type, out->tensor.data, i * length * inner, x->data,
                         (i * x->shape.dims[axis] + at) * inner, length * inner);
    return x->type == CM_STRING && x->buffer ? cm_buffer_hold(out->tensor.buffer, x->buffer, err)
                                             : CM_OK;
}

static enum cm_status split_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_datum *y = call->out_datum[0];
    struct cuts cuts;
    int axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), x->shape.rank, &axis))
        return cm_call_fail(call, CM_BAD_MODEL, "axis is out of range for rank %d", x->shape.rank);
    const int64_t whole = x->shape.dims[axis];
    const bool drop = !(call->n_in > 1 && call->in[1]) && !cm_node_int(call->node, "keepdims");
    CM_TRY(read_cuts(call, whole, &cuts));
    CM_TRY(cm_sequence_new((size_t)cuts.count, y, call->err));
    int64_t at = 0;
    for (int64_t i = 0; i < cuts.count; i++) {
        const int64_t left = whole - at;
        const int64_t length = cuts.list            ? cm_tensor_int(cuts.list, i)
                               : cuts.length < left ? cuts.length
                                                    : left;
        struct cm_datum *piece = &y->items[y->n_items++];
        CM_TRY(take_piece(x, axis, at, length, drop, piece, call->err));
        at += length;
    }
    return CM_OK;
}

CM_OP(SplitToSequence, .infer = split_infer, .run = split_run, .grad = cm_split_sequence_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);

/* ---- ConcatFromSequence ---- */

static enum cm_status concat_infer(struct cm_infer *in)
{
    const struct cm_type *x;
    const bool new_axis = cm_node_int(in->node, "new_axis") != 0;
    struct cm_dim dims[CM_MAX_RANK + 1];
    int axis;
    CM_TRY(cm_sequence_element(in, 0, &x));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    const int rank = x->rank + new_axis;
    CM_TRY(cm_infer_axis(in, cm_node_int(in->node, "axis"), rank, false, &axis));
    for (int i = 0, from = 0; i < rank; i++) {
        dims[i] = i == axis ? CM_DIM_ANY : x->dims[from];
        from += !(i == axis && new_axis);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

/* The shape of an item as it lies in the result. */
static enum cm_status placed(struct cm_call *call, const struct cm_tensor *item, int axis,
                             bool new_axis, struct cm_shape *out)
{
    *out = item->shape;
    return !new_axis || cm_shape_insert(out, axis, 1) ? CM_OK : cm_call_fail_rank(call);
}

static enum cm_status joined_shape(struct cm_call *call, int axis, bool new_axis,
                                   struct cm_shape *out)
{
    const struct cm_datum *x = call->in_datum[0];
    CM_TRY(placed(call, &x->items[0].tensor, axis, new_axis, out));
    int64_t total = 0;
    for (size_t i = 0; i < x->n_items; i++) {
        const struct cm_tensor *item = &x->items[i].tensor;
        if (item->shape.rank != x->items[0].tensor.shape.rank ||
            item->type != x->items[0].tensor.type)
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "item %zu has another rank or element type than item 0", i);
        struct cm_shape shape;
        CM_TRY(placed(call, item, axis, new_axis, &shape));
        if (!cm_dim_add(total, shape.dims[axis], &total))
            return cm_call_fail(call, CM_LIMIT, "its result would be too long");
        shape.dims[axis] = out->dims[axis];
        if (!cm_shape_equal(&shape, out))
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "item %zu does not fit beside item 0 along axis %d", i, axis);
    }
    out->dims[axis] = total;
    return CM_OK;
}

static enum cm_status concat_run(struct cm_call *call)
{
    const struct cm_datum *x = call->in_datum[0];
    const bool new_axis = cm_node_int(call->node, "new_axis") != 0;
    struct cm_shape shape;
    int axis;
    if (x->n_items == 0)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the sequence is empty");
    const struct cm_tensor *first = &x->items[0].tensor;
    const int rank = first->shape.rank + new_axis;
    if (!cm_axis_fix(cm_node_int(call->node, "axis"), rank, &axis))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "axis is out of range for rank %d", rank);
    CM_TRY(joined_shape(call, axis, new_axis, &shape));
    CM_TRY(cm_call_allocate(call, 0, first->type, &shape));
    struct cm_tensor *y = &call->out_datum[0]->tensor;
    const int64_t outer = cm_shape_span(&shape, 0, axis);
    const int64_t whole = cm_shape_span(&shape, axis, rank);
    int64_t at = 0;
    for (size_t i = 0; i < x->n_items; i++) {
        const struct cm_tensor *item = &x->items[i].tensor;
        const int64_t run = cm_shape_span(&item->shape, axis, item->shape.rank);
        for (int64_t r = 0; r < outer; r++)
            cm_elements_copy(y->type, y->data, r * whole + at, item->data, r * run, run);
        at += run;
        if (y->type == CM_STRING && item->buffer)
            CM_TRY(cm_buffer_hold(y->buffer, item->buffer, call->err));
    }
    return CM_OK;
}

CM_OP(ConcatFromSequence, .infer = concat_infer, .run = concat_run, .grad = cm_concat_sequence_grad,
      .effects = CM_OUTPUT_SIZE_AT_RUN);
