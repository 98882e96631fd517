/* MatMul: numpy's rule. Operands of rank 1 are a row on the left and a column on the right; leading
 * axes are batches and broadcast. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "ops/common/gemm.h"

/* The batch axes of one operand's type: all but the last two. */
static int batch_rank(const struct cm_type *type)
{
    return type->rank > 2 ? type->rank - 2 : 0;
}

static struct cm_dim batch_dim(const struct cm_type *type, int rank, int axis)
{
    const int missing = rank - batch_rank(type);
    return axis < missing ? CM_DIM(1) : type->dims[axis - missing];
}

static enum cm_status matmul_infer(struct cm_infer *in)
{
    const struct cm_type *a = cm_infer_type(in, 0), *b = cm_infer_type(in, 1);
    struct cm_dim dims[CM_MAX_RANK], inner;
    if (a->rank == CM_RANK_UNKNOWN || b->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, a->dtype, CM_RANK_UNKNOWN, NULL);
    if (a->rank == 0 || b->rank == 0)
        return cm_infer_fail(in, "input %d is a scalar, needs rank 1 or more",
                             a->rank == 0 ? 0 : 1);
    const struct cm_dim left = a->dims[a->rank - 1], right = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (!cm_dim_unify(left, right, &inner))
        return cm_infer_fail(in, "the left operand has %lld columns, the right one %lld rows",
                             (long long)left.value, (long long)right.value);
    const int batch = batch_rank(a) > batch_rank(b) ? batch_rank(a) : batch_rank(b);
    for (int i = 0; i < batch; i++) {
        const struct cm_dim x = batch_dim(a, batch, i), y = batch_dim(b, batch, i);
        if (!cm_dim_broadcast(x, y, &dims[i]))
            return cm_infer_fail(in, "batch axis %d has %lld on the left and %lld on the right", i,
                                 (long long)x.value, (long long)y.value);
    }
    int rank = batch;
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return cm_infer_set_tensor(in, 0, a->dtype, rank, dims);
}

struct matmul {
    int64_t m, n, k;
    int rank; /* of the batch axes that are walked */
    int64_t batches;
    int64_t dims[CM_MAX_RANK], a_strides[CM_MAX_RANK], b_strides[CM_MAX_RANK];
};

/* The batch axes of a tensor as a shape. */
static struct cm_shape batch_shape(const struct cm_tensor *tensor)
{
    struct cm_shape shape = tensor->shape;
    shape.rank = shape.rank > 2 ? shape.rank - 2 : 0;
    return shape;
}

static enum cm_status matmul_prepare(struct cm_call *call)
{
    const struct cm_shape *a = &call->in[0]->shape, *b = &call->in[1]->shape;
    struct matmul *state = cm_call_state(call, sizeof *state);
    if (cm_tensor_count(call->out[0]) == 0)
        return CM_OK; /* no batches: sizes beside a zero may be anything */
    state->k = a->dims[a->rank - 1];
    state->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    state->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;

    const struct cm_shape batch_a = batch_shape(call->in[0]), batch_b = batch_shape(call->in[1]);
    struct cm_shape batch;
    if (!cm_broadcast(&batch_a, &batch_b, &batch))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "the batch axes of its operands do not broadcast");
    if (cm_shape_elements(&batch_b) == 1 && a->rank > 1) {
        /* One matrix on the right: the batches of the left operand are more rows. */
        state->m *= cm_shape_elements(&batch);
        batch.rank = 0;
    }
    state->rank = batch.rank;
    state->batches = cm_shape_elements(&batch);
    if (batch.rank > 0) {
        memcpy(state->dims, batch.dims, sizeof state->dims);
        cm_broadcast_strides(&batch_a, &batch, state->a_strides);
        cm_broadcast_strides(&batch_b, &batch, state->b_strides);
    }
    cm_call_scratch(call, cm_gemm_scratch(call->in[0]->type, state->m, state->n, state->k));
    return CM_OK;
}

static enum cm_status matmul_run(struct cm_call *call)
{
    const struct matmul *state = call->state;
    const int64_t m = state->m, n = state->n, k = state->k;
    struct cm_gemm g = {.type = call->in[0]->type,
                        .m = m,
                        .n = n,
                        .k = k,
                        .alpha = 1,
                        .a = {call->in[0]->data, 0, k, 1},
                        .b = {call->in[1]->data, 0, n, 1},
                        .c = call->out[0]->data,
                        .c_row = n,
                        .c_column = 1};
    if (!cm_gemm_has(g.type))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(g.type));

    int64_t index[CM_MAX_RANK] = {0}, at_a = 0, at_b = 0;
    for (int64_t batch = 0; batch < state->batches; batch++) {
        g.a.first = at_a * m * k;
        g.b.first = at_b * k * n;
        g.c_first = batch * m * n;
        cm_gemm(&g, call->scratch);
        for (int i = state->rank - 1; i >= 0; i--) {
            at_a += state->a_strides[i];
            at_b += state->b_strides[i];
            if (++index[i] < state->dims[i])
                break;
            at_a -= state->a_strides[i] * state->dims[i];
            at_b -= state->b_strides[i] * state->dims[i];
            index[i] = 0;
        }
    }
    return CM_OK;
}

/* The last two axes exchanged. */
static cm_value transposed(struct cm_grad *g, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&g->build, x);
    int64_t perm[CM_MAX_RANK];
    if (!type)
        return 0;
    for (int i = 0; i < type->rank; i++)
        perm[i] = i;
    perm[type->rank - 1] = type->rank - 2;
    perm[type->rank - 2] = type->rank - 1;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    return cm_emit_with(g, "Transpose",
                        CM_ATTRIBUTES(cm_attr_ints(arena, "perm", (size_t)type->rank, perm)), x);
}

/* All rows of all batches as one matrix: the last axis stays. */
static cm_value flattened(struct cm_grad *g, cm_value x)
{
    const struct cm_type *type = cm_builder_type(&g->build, x);
    if (!type || type->rank == 2)
        return x;
    const struct cm_dim last =
        type->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : type->dims[type->rank - 1];
    if (cm_dim_known(last) && last.value > 0)
        return cm_emit(g, "Reshape", x, cm_emit_int64s(g, -1, last.value));
    struct cm_arena *arena = cm_builder_arena(&g->build);
    cm_value width = cm_emit_with(g, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", -1)), x);
    if (type->rank ==
        CM_RANK_UNKNOWN) /* says that it is one number, so that the result has rank 2 */
        width = cm_emit(g, "Reshape", width, cm_emit_int64s(g, 1));
    const cm_value shape = cm_emit_with(g, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)),
                                        cm_emit_int64s(g, -1), width);
    return cm_emit(g, "Reshape", x, shape);
}

/* dA = dY B', dB = A' dY. Vectors are made matrices first; what was broadcast is summed by
 * cm_grad_set. */
static enum cm_status matmul_grad(struct cm_grad *g)
{
    const cm_value inputs[2] = {cm_grad_input(g, 0), cm_grad_input(g, 1)};
    const int rank_a = cm_builder_type(&g->build, inputs[0])->rank;
    const int rank_b = cm_builder_type(&g->build, inputs[1])->rank;
    cm_value a = inputs[0], b = inputs[1], dy = cm_grad_incoming(g, 0);
    if (rank_b == CM_RANK_UNKNOWN || (rank_a == CM_RANK_UNKNOWN && rank_b != 2))
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the ranks of both operands, or that "
                               "the second is a matrix");
    if (rank_b == 1) {
        b = cm_emit(g, "Unsqueeze", b, cm_emit_int64s(g, 1));
        dy = cm_emit(g, "Unsqueeze", dy, cm_emit_int64s(g, -1));
    }
    if (rank_a == 1) {
        a = cm_emit(g, "Unsqueeze", a, cm_emit_int64s(g, 0));
        dy = cm_emit(g, "Unsqueeze", dy, cm_emit_int64s(g, -2));
    }
    if (cm_grad_wants(g, 0))
        CM_TRY(cm_grad_set(g, 0, cm_emit(g, "MatMul", dy, transposed(g, b))));
    if (!cm_grad_wants(g, 1))
        return g->build.status;
    /* one product instead of one per batch and their sum; a vector is one row too */
    if (rank_b <= 2 && (rank_a > 2 || rank_a == CM_RANK_UNKNOWN)) {
        a = flattened(g, a);
        dy = flattened(g, dy);
    }
    cm_value db = cm_emit(g, "MatMul", transposed(g, a), dy);
    if (rank_b == 1)
        db = cm_emit(g, "Squeeze", db, cm_emit_int64s(g, -1));
    return cm_grad_set(g, 1, db);
}

static double matmul_flops(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                           const struct cm_tensor *const *out, int n_out)
{
    const struct cm_shape *a = &in[0]->shape;
    (void)node, (void)n_in;
    return a->rank > 0 && n_out > 0 && out[0]
               ? 2.0 * (double)cm_tensor_count(out[0]) * (double)a->dims[a->rank - 1]
               : 0;
}

CM_OP(MatMul, .infer = matmul_infer, .prepare = matmul_prepare, .run = matmul_run,
      .grad = matmul_grad, .cost.work = cm_work_product, .cost.flops = matmul_flops,
      .layer.weights = CM_OPERAND(0) | CM_OPERAND(1));
