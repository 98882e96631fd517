/* Expand and Tile: elements repeated. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/move.h"
#include "ops/shape/shape_rules.h"

/* ---- Expand ---- */

/* The input's shape and the one in input 1, broadcast together. */
static enum cm_status expand_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known shape;

    CM_TRY(cm_infer_list(in, 1));
    if (x->rank == CM_RANK_UNKNOWN || !cm_infer_known(in, 1, &shape))
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (shape.count > CM_MAX_RANK)
        return cm_infer_fail(in, "its result would have rank %zu, the limit is %d", shape.count,
                             CM_MAX_RANK);
    const int given = (int)shape.count, rank = given > x->rank ? given : x->rank;
    for (int i = 0; i < rank; i++) {
        const int of_x = i - (rank - x->rank), of_shape = i - (rank - given);
        const struct cm_dim have = of_x < 0 ? CM_DIM(1) : x->dims[of_x];
        struct cm_dim want = CM_DIM(1);
        if (of_shape >= 0) {
            const struct cm_quantity item = shape.items[of_shape];
            if (item.is_number && item.number < 0)
                return cm_infer_fail(in, "dimension %d of the shape is %lld, must not be negative",
                                     of_shape, (long long)item.number);
            want = cm_quantity_dim(item);
        }
        if (!cm_dim_broadcast(have, want, &dims[i]))
            return cm_infer_fail(in, "axis %d of the result: %lld does not expand to %lld", i,
                                 (long long)have.value, (long long)want.value);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

static enum cm_status expand_prepare(struct cm_call *call)
{
    const struct cm_shape *y = &call->out[0]->shape;
    int64_t from[CM_MAX_RANK], to[CM_MAX_RANK];
    cm_broadcast_strides(&call->in[0]->shape, y, from);
    cm_shape_strides(y, to);
    cm_move_plan(cm_call_state(call, sizeof(struct cm_move)), y->rank, y->dims, from, to);
    return CM_OK;
}

static enum cm_status repeat_run(struct cm_call *call)
{
    cm_move_run(call->state, call->in[0]->type, call->in[0]->data, call->out[0]->data);
    return cm_move_hold(call->out[0], call->in[0], call->err);
}

/* The shape of the result may have been known before the contents of operand 1 were: x of size 3
 * stays 3, whether the shape says 1 or 3. Here the shape must really say so. */
static enum cm_status expand_run(struct cm_call *call)
{
    const struct cm_shape *y = &call->out[0]->shape;
    const int given = (int)cm_tensor_count(call->in[1]);

    for (int i = 0; i < given; i++) {
        const int axis = y->rank - given + i;
        const int64_t want = cm_tensor_int(call->in[1], i);
        if (want != 1 && want != y->dims[axis])
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "axis %d of the result: %lld does not expand to %lld", axis,
                                (long long)y->dims[axis], (long long)want);
    }
    return repeat_run(call);
}

static enum cm_status expand_grad(struct cm_grad *g)
{
    return cm_grad_set(g, 0, cm_grad_incoming(g, 0)); /* which sums over what was repeated */
}

CM_OP(Expand, .infer = expand_infer, .prepare = expand_prepare, .run = expand_run,
      .grad = expand_grad, .cost.work = cm_work_linear, .values.picked_from = 1);

/* ---- Tile ---- */

static enum cm_status tile_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known repeats;
    const bool known = cm_infer_known(in, 1, &repeats);
    const int rank = x->rank == CM_RANK_UNKNOWN && known && repeats.count <= CM_MAX_RANK
                         ? (int)repeats.count
                         : x->rank;

    CM_TRY(cm_infer_list(in, 1));
    if (rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, x->dtype, CM_RANK_UNKNOWN, NULL);
    if (known && repeats.count != (size_t)rank)
        return cm_infer_fail(in, "repeats has %zu numbers, its input has rank %d", repeats.count,
                             rank);
    for (int i = 0; i < rank; i++) {
        const struct cm_dim dim = x->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : x->dims[i];
        if (known && repeats.items[i].is_number && repeats.items[i].number < 0)
            return cm_infer_fail(in, "axis %d is to be repeated %lld times", i,
                                 (long long)repeats.items[i].number);
        dims[i] = cm_dim_product(in->symbols, dim,
                                 known ? cm_quantity_dim(repeats.items[i]) : CM_DIM_ANY);
        if (known && cm_dim_known(dim) && repeats.items[i].is_number && !cm_dim_known(dims[i]))
            return cm_infer_fail(in, "axis %d would be longer than 64 bits count", i);
    }
    return cm_infer_set_tensor(in, 0, x->dtype, rank, dims);
}

/* Each axis becomes two: how often, and the axis itself. */
static enum cm_status tile_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape, *y = &call->out[0]->shape;
    int64_t dims[2 * CM_MAX_RANK], from[2 * CM_MAX_RANK], to[2 * CM_MAX_RANK];
    int64_t x_strides[CM_MAX_RANK], y_strides[CM_MAX_RANK];

    cm_shape_strides(x, x_strides);
    cm_shape_strides(y, y_strides);
    for (int i = 0; i < x->rank; i++) {
        dims[2 * i] = x->dims[i] ? y->dims[i] / x->dims[i] : 0;
        from[2 * i] = 0;
        to[2 * i] = x->dims[i] * y_strides[i];
        dims[2 * i + 1] = x->dims[i];
        from[2 * i + 1] = x_strides[i];
        to[2 * i + 1] = y_strides[i];
    }
    cm_move_plan(cm_call_state(call, sizeof(struct cm_move)), 2 * x->rank, dims, from, to);
    return CM_OK;
}

/* dy cut back into repeats and axes, summed over the repeats. */
static enum cm_status tile_grad(struct cm_grad *g)
{
    const cm_value x = cm_grad_input(g, 0), dy = cm_grad_incoming(g, 0);
    const int rank = cm_builder_type(&g->build, x)->rank;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    int64_t axes[CM_MAX_RANK];

    if (rank == CM_RANK_UNKNOWN)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of its input");
    if (rank == 0)
        return cm_grad_set(g, 0, dy);
    const cm_value column = cm_emit_int64s(g, 1), line = cm_emit_int64s(g, -1);
    const cm_value repeats = cm_emit(g, "Unsqueeze", cm_grad_input(g, 1), column);
    const cm_value dims = cm_emit(g, "Unsqueeze", cm_build_shape_of(&g->build, x), column);
    const cm_value pairs =
        cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 1)), repeats, dims);
    const cm_value shape = cm_emit(g, "Reshape", pairs, line);
    const cm_value cut =
        cm_emit_with(g, "Reshape", CM_ATTRIBUTES(cm_attr_int(arena, "allowzero", 1)), dy, shape);
    for (int i = 0; i < rank; i++)
        axes[i] = 2 * i;
    const cm_value over = cm_build_int64s(&g->build, (size_t)rank, axes);
    const cm_value sum =
        cm_emit_with(g, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), cut, over);
    return cm_grad_set(g, 0, sum);
}

CM_OP(Tile, .infer = tile_infer, .prepare = tile_prepare, .run = repeat_run, .grad = tile_grad,
      .cost.work = cm_work_linear, .values.picked_from = 1);
