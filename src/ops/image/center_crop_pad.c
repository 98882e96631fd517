/* CenterCropPad: axes cut or padded with zeros at both ends until they have the sizes asked for. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/require.h"
#include "ops/common/move.h"

/* The axes that shape speaks of; returns how many, or -1 after saying why not. */
static int read_axes(const struct cm_node *node, int rank, int *axes, struct cm_error *err)
{
    const struct cm_int64s given = cm_node_ints(node, "axes");
    if (!cm_node_has_attr(node, "axes")) {
        for (int i = 0; i < rank; i++)
            axes[i] = i;
        return rank;
    }
    bool seen[CM_MAX_RANK] = {false};
    for (size_t i = 0; i < given.count; i++) {
        int axis;
        if (!cm_axis_fix(given.items[i], rank, &axis) || seen[axis]) {
            cm_fail(err, CM_BAD_MODEL, "axis %lld is out of range for rank %d, or given twice",
                    (long long)given.items[i], rank);
            return -1;
        }
        seen[axis] = true;
        axes[i] = axis;
    }
    return (int)given.count;
}

static enum cm_status crop_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known known;
    int axes[CM_MAX_RANK];
    CM_TRY(cm_infer_rank(in, 1, 1, 1));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    const int n = read_axes(in->node, x->rank, axes, in->err);
    if (n < 0)
        return CM_BAD_MODEL;
    cm_type_copy_dims(dims, x);
    const bool have = cm_infer_known(in, 1, &known);
    if (have && known.count != (size_t)n)
        return cm_infer_fail(in, "shape has %zu numbers, needs %d", known.count, n);
    for (int i = 0; i < n; i++) {
        dims[axes[i]] = have ? cm_quantity_dim(known.items[i]) : CM_DIM_ANY;
        if (have && known.items[i].is_number && known.items[i].number < 0)
            return cm_infer_fail(in, "shape has %lld, must not be negative",
                                 (long long)known.items[i].number);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

static enum cm_status crop_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape, *y = &call->out[0]->shape;
    struct cm_move *move = cm_call_state(call, sizeof *move);
    int64_t dims[CM_MAX_RANK], from[CM_MAX_RANK], to[CM_MAX_RANK], from_at = 0, to_at = 0;
    cm_shape_strides(x, from);
    cm_shape_strides(y, to);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i] < y->dims[i] ? x->dims[i] : y->dims[i];
        from_at += (x->dims[i] - dims[i]) / 2 * from[i];
        to_at += (y->dims[i] - dims[i]) / 2 * to[i];
    }
    cm_move_plan(move, x->rank, dims, from, to);
    move->from_at += from_at;
    move->to_at += to_at;
    return CM_OK;
}

static enum cm_status crop_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    cm_move_zero(x->type, call->out[0]->data, 0, cm_tensor_count(call->out[0]));
    cm_move_run(call->state, x->type, x->data, call->out[0]->data);
    return cm_move_hold(call->out[0], x, call->err);
}

/* Cutting and padding are each other's transpose: the centre of an axis stays where it is. */
static enum cm_status crop_grad(struct cm_grad *g)
{
    return cm_grad_formula(g,
                           cm_node_has_attr(g->node, "axes")
                               ? "shape = Shape(input_data); part = Gather(shape, axes);"
                                 "d_input_data = CenterCropPad<axes>(d_output_data, part)"
                               : "d_input_data = CenterCropPad(d_output_data, Shape(input_data))");
}

/* Of the sizes at hand and those asked for, what is to be cut or added in all, and half of it
 * before. Pads are zero where shape says nothing. Not every runtime pads booleans. */
static enum cm_status crop_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0);
    const struct cm_type *type = cm_builder_type(&b->build, x);
    int axes[CM_MAX_RANK];
    int64_t list[CM_MAX_RANK] = {0};
    if (type->rank == CM_RANK_UNKNOWN || type->rank == 0)
        return cm_body_decline(b, "the rank of input 0 is not known");
    const int n = read_axes(b->node, type->rank, axes, b->build.err);
    if (n < 0)
        return CM_BAD_MODEL;
    const cm_value zeros = cm_build_int64s(&b->build, (size_t)type->rank, list);
    for (int i = 0; i < n; i++)
        list[i] = axes[i];
    return cm_body_return(
        b, 0,
        cm_emit_formula(b,
                        "x, shape, at, zeros: want = int64(shape); have = Gather(Shape(x), at);"
                        "zero = int64(0); two = int64(2); start = Max(have - want, zero) / two;"
                        "inner = Slice(x, start, start + Min(have, want), at);"
                        "add = Max(want - have, zero); before = add / two; after = add - before;"
                        "pads = Concat<axis=0>(ScatterElements(zeros, at, before),"
                        "                      ScatterElements(zeros, at, after));"
                        "dtype(x) == bool ? bool(Pad(uint8(inner), pads)) : Pad(inner, pads)",
                        x, cm_body_input(b, 1), cm_build_int64s(&b->build, (size_t)n, list),
                        zeros));
}

static void crop_require(struct cm_require *r)
{
    const struct cm_type *x = cm_require_type(r, 0);
    if (!x)
        return;
    const bool has_axes = cm_node_has_attr(r->node, "axes");
    const int64_t n = has_axes ? (int64_t)cm_node_ints(r->node, "axes").count : x->rank;
    cm_require_size(r, 1, 0, n, "the shape does not have a size for each axis");
    cm_require_least(r, 1, 0, "the shape has a size below 0");
}

CM_OP(CenterCropPad, .require = crop_require, .infer = crop_infer, .prepare = crop_prepare,
      .run = crop_run, .grad = crop_grad, .body = crop_body);
