/* MaxUnpool: elements put back where MaxPool found them, zeros elsewhere. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/move.h"
#include "ops/common/window.h"

/* The length that pooling was of, if nothing is said about it; below 0 when there is none. */
static int64_t unpooled(const struct cm_window *window, int axis, int64_t size)
{
    int64_t length;
    if (!cm_int64_mul(size - 1, window->stride[axis], &length))
        return -1;
    return length - window->pad_begin[axis] - window->pad_end[axis] + window->kernel[axis];
}

static enum cm_status infer_sizes(struct cm_infer *in, const struct cm_type *x, struct cm_dim *dims)
{
    struct cm_window window;
    CM_TRY(cm_window_read(in->node, x->rank - 2, NULL, &window, in->err));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 0; i < window.rank; i++) {
        dims[i + 2] = CM_DIM_ANY;
        if (!cm_dim_known(x->dims[i + 2]))
            continue;
        const int64_t length = unpooled(&window, i, x->dims[i + 2].value);
        if (length < 0)
            return cm_infer_fail(in, "spatial axis %d would have length %lld", i,
                                 (long long)length);
        dims[i + 2] = CM_DIM(length);
    }
    return CM_OK;
}

static enum cm_status unpool_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0), *indices = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK];
    struct cm_known shape;
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set(in, 0, cm_type_tensor(in->arena, x->dtype, CM_RANK_UNKNOWN, NULL));
    CM_TRY(cm_infer_rank(in, 0, 3, CM_MAX_RANK));
    if (indices->rank != CM_RANK_UNKNOWN && indices->rank != x->rank)
        return cm_infer_fail(in, "the indices have rank %d, input 0 has %d", indices->rank,
                             x->rank);
    CM_TRY(infer_sizes(in, x, dims));
    if (cm_infer_type(in, 2)) {
        const bool known = cm_infer_known(in, 2, &shape);
        if (known && shape.count != (size_t)x->rank)
            return cm_infer_fail(in, "output_shape has %zu elements, needs %d", shape.count,
                                 x->rank);
        for (int i = 0; i < x->rank; i++)
            dims[i] = known ? cm_quantity_dim(shape.items[i]) : CM_DIM_ANY;
    }
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank, dims);
}

struct unpool {
    struct cm_shape from; /* the shape that indices are counted in */
    int64_t strides[CM_MAX_RANK], y_strides[CM_MAX_RANK];
    int64_t count;
};

static enum cm_status unpool_prepare(struct cm_call *call)
{
    struct unpool *state = cm_call_state(call, sizeof *state);
    const struct cm_shape *x = &call->in[0]->shape, *y = &call->out[0]->shape;
    struct cm_window window;
    CM_TRY(cm_window_read(call->node, x->rank - 2, NULL, &window, call->err));
    state->from = *x;
    for (int i = 0; i < window.rank; i++)
        state->from.dims[i + 2] = unpooled(&window, i, x->dims[i + 2]);
    for (int i = 0; i < x->rank; i++)
        if (state->from.dims[i] < 0 || y->dims[i] < state->from.dims[i])
            return cm_call_fail(call, CM_BAD_ARGUMENT,
                                "output_shape has %lld for axis %d, needs at least %lld",
                                (long long)y->dims[i], i, (long long)state->from.dims[i]);
    if (!cm_shape_equal(x, &call->in[1]->shape))
        return cm_call_fail(call, CM_BAD_ARGUMENT, "the indices have another shape than input 0");
    if (!cm_shape_count(&state->from, &state->count))
        return cm_call_fail(call, CM_LIMIT, "its result would be too large");
    cm_shape_strides(&state->from, state->strides);
    cm_shape_strides(y, state->y_strides);
    return CM_OK;
}

static enum cm_status unpool_run(struct cm_call *call)
{
    const struct unpool *state = call->state;
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const int64_t *indices = call->in[1]->data;
    const int64_t n = cm_tensor_count(x);
    cm_move_zero(y->type, y->data, 0, cm_tensor_count(y));
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = indices[i], at = 0;
        if (rest < 0 || rest >= state->count)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "index %lld is outside a tensor of %lld",
                                (long long)rest, (long long)state->count);
        for (int a = 0; a < x->shape.rank; a++) {
            at += rest / state->strides[a] * state->y_strides[a];
            rest %= state->strides[a];
        }
        cm_move_span(x->type, x->data, i, y->data, at, 1);
    }
    return CM_OK;
}

/* Taken from where they were put; the part that the indices count in is cut out first. */
static enum cm_status unpool_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value x = cm_grad_input(g, 0);
    cm_value dy = cm_grad_incoming(g, 0);
    if (cm_grad_input(g, 2)) {
        const int rank = cm_builder_type(&g->build, x)->rank;
        struct cm_window window;
        int64_t reach[CM_MAX_RANK], axes[CM_MAX_RANK], starts[CM_MAX_RANK] = {0};
        if (rank == CM_RANK_UNKNOWN)
            return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                                   "the gradient needs to know the rank of input 0");
        CM_TRY(cm_window_read(g->node, rank - 2, NULL, &window, g->build.err));
        const size_t n = (size_t)window.rank;
        for (int i = 0; i < window.rank; i++) {
            reach[i] = unpooled(&window, i, 1);
            axes[i] = i + 2;
        }
        const cm_value sizes =
            cm_emit_with(g, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", 2)), x);
        const cm_value steps = cm_emit(g, "Mul", cm_emit(g, "Sub", sizes, cm_emit_int64s(g, 1)),
                                       cm_build_int64s(&g->build, n, window.stride));
        dy = cm_emit(g, "Slice", dy, cm_build_int64s(&g->build, n, starts),
                     cm_emit(g, "Add", steps, cm_build_int64s(&g->build, n, reach)),
                     cm_build_int64s(&g->build, n, axes));
    }
    const cm_value flat = cm_emit(g, "Reshape", dy, cm_emit_int64s(g, -1));
    return cm_grad_set(g, 0, cm_emit(g, "Gather", flat, cm_grad_input(g, 1)));
}

CM_OP(MaxUnpool, .infer = unpool_infer, .prepare = unpool_prepare, .run = unpool_run,
      .grad = unpool_grad);
