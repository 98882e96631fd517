/* Gemm: Y = alpha A' B' + beta C, A' and B' transposed where the attributes say so, C broadcast. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "graph/require.h"
#include "ops/common/gemm.h"

#include <math.h>

/* Rows and columns of an operand after its transposition; of an operand of unknown rank nothing is
 * known. */
static enum cm_status matrix_dims(struct cm_infer *in, int i, bool transposed, struct cm_dim *rows,
                                  struct cm_dim *columns)
{
    const struct cm_type *type = cm_infer_type(in, i);
    *rows = *columns = CM_DIM_ANY;
    if (type->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, i, 2, 2));
    *rows = type->dims[transposed ? 1 : 0];
    *columns = type->dims[transposed ? 0 : 1];
    return CM_OK;
}

static enum cm_status check_addend(struct cm_infer *in, const struct cm_dim *dims)
{
    const struct cm_type *c = cm_infer_type(in, 2);
    if (!c || c->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 2, 0, 2));
    for (int i = 0; i < c->rank; i++) {
        const struct cm_dim have = c->dims[i], need = dims[2 - c->rank + i];
        if (cm_dim_known(have) && cm_dim_known(need) && have.value != 1 && have.value != need.value)
            return cm_infer_fail(in, "input 2 has %lld where the product has %lld",
                                 (long long)have.value, (long long)need.value);
    }
    return CM_OK;
}

static enum cm_status gemm_infer(struct cm_infer *in)
{
    struct cm_dim dims[2], left, right, inner;
    CM_TRY(matrix_dims(in, 0, cm_node_int(in->node, "transA") != 0, &dims[0], &left));
    CM_TRY(matrix_dims(in, 1, cm_node_int(in->node, "transB") != 0, &right, &dims[1]));
    if (!cm_dim_unify(left, right, &inner))
        return cm_infer_fail(in, "the left matrix has %lld columns, the right one %lld rows",
                             (long long)left.value, (long long)right.value);
    CM_TRY(check_addend(in, dims));
    return cm_infer_set_tensor(in, 0, cm_infer_type(in, 0)->dtype, 2, dims);
}

static enum cm_status gemm_prepare(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    const struct cm_shape *a = &call->in[0]->shape, *y = &call->out[0]->shape;
    const bool trans_a = cm_node_int(node, "transA") != 0,
               trans_b = cm_node_int(node, "transB") != 0;
    struct cm_gemm *g = cm_call_state(call, sizeof *g);
    const int64_t m = y->dims[0], n = y->dims[1], k = a->dims[trans_a ? 0 : 1];
    *g = (struct cm_gemm){.type = call->in[0]->type,
                          .m = m,
                          .n = n,
                          .k = k,
                          .a = {.row = trans_a ? 1 : k, .column = trans_a ? m : 1},
                          .b = {.row = trans_b ? 1 : n, .column = trans_b ? k : 1},
                          .alpha = (double)cm_node_float(node, "alpha"),
                          .beta = (double)cm_node_float(node, "beta"),
                          .c_row = n,
                          .c_column = 1};
    if (call->n_in > 2 && call->in[2]) {
        int64_t strides[CM_MAX_RANK];
        cm_broadcast_strides(&call->in[2]->shape, y, strides);
        g->add.row = strides[0];
        g->add.column = strides[1];
    }
    cm_call_scratch(call, cm_gemm_scratch(g->type, m, n, k));
    return CM_OK;
}

static enum cm_status gemm_run(struct cm_call *call)
{
    struct cm_gemm g = *(const struct cm_gemm *)call->state;
    if (!cm_gemm_has(g.type))
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(g.type));
    g.a.data = call->in[0]->data;
    g.b.data = call->in[1]->data;
    g.add.data = call->n_in > 2 && call->in[2] ? call->in[2]->data : NULL;
    g.c = call->out[0]->data;
    cm_gemm(&g, call->scratch);
    return CM_OK;
}

static cm_value emit_product(struct cm_grad *g, cm_value a, bool trans_a, cm_value b, bool trans_b)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    return cm_emit_with(
        g, "Gemm",
        CM_ATTRIBUTES(cm_attr_float(arena, "alpha", cm_node_float(g->node, "alpha")),
                      cm_attr_int(arena, "transA", trans_a), cm_attr_int(arena, "transB", trans_b)),
        a, b);
}

/* dA' = alpha dY B'', dB' = alpha A'' dY, each transposed back by exchanging the factors; dC = beta
 * dY. */
static enum cm_status gemm_grad(struct cm_grad *g)
{
    const cm_value a = cm_grad_input(g, 0), b = cm_grad_input(g, 1), dy = cm_grad_incoming(g, 0);
    const bool trans_a = cm_node_int(g->node, "transA") != 0;
    const bool trans_b = cm_node_int(g->node, "transB") != 0;
    CM_TRY(cm_grad_set(g, 0,
                       trans_a ? emit_product(g, b, trans_b, dy, true)
                               : emit_product(g, dy, false, b, !trans_b)));
    CM_TRY(cm_grad_set(g, 1,
                       trans_b ? emit_product(g, dy, true, a, trans_a)
                               : emit_product(g, a, !trans_a, dy, false)));
    if (!cm_grad_input(g, 2))
        return CM_OK;
    const double beta = (double)cm_node_float(g->node, "beta");
    return cm_grad_set(g, 2,
                       beta == 1 ? dy : cm_emit(g, "Mul", dy, cm_emit_scalar_like(g, dy, beta)));
}

static double gemm_flops(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                         const struct cm_tensor *const *out, int n_out)
{
    const struct cm_shape *a = &in[0]->shape;
    (void)n_in;
    return a->rank == 2 && n_out > 0 && out[0]
               ? 2.0 * (double)cm_tensor_count(out[0]) *
                     (double)a->dims[cm_node_int(node, "transA") ? 0 : 1]
               : 0;
}

/* alpha A' B' + beta C; whole numbers with factors go through double, and become the nearest number
 * that their type has. */
static enum cm_status gemm_body(struct cm_body *b)
{
    const enum cm_dtype type = cm_builder_type(&b->build, cm_body_input(b, 0))->dtype;
    const bool has_factors =
        cm_node_float(b->node, "alpha") != 1 || cm_node_float(b->node, "beta") != 1;
    const bool through = has_factors && cm_dtype_info(type)->kind != CM_CLASS_FLOAT;
    const bool wide = type == CM_INT64 || type == CM_UINT64;
    const bool has_sign = type == CM_INT32 || type == CM_INT64;
    const double past = ldexp(1, (wide ? 64 : 32) - has_sign);
    return cm_body_formula(
        b,
        "through = %d; left = through ? double(A) : A; right = through ? double(B) : B;"
        "left = transA ? Transpose<perm=[1, 0]>(left) : left;"
        "right = transB ? Transpose<perm=[1, 0]>(right) : right;"
        "c = through ? double(C) : C; product = MatMul(left, right);"
        "scaled = alpha == 1 ? product : product * alpha;"
        "y = scaled + (c ? beta == 1 ? c : c * beta : none);"
        "Y = through ? cast(Min(Max(y, %.17g), %.17g), A) : y",
        through, has_sign ? -past : 0.0, wide ? nextafter(past, 0) : past - 1);
}

static void gemm_require(struct cm_require *r)
{
    const char *reason = "input 2 does not broadcast to the product";
    cm_require_spread(r, 2, -1, 1, cm_node_int(r->node, "transB") ? 0 : 1, reason);
    cm_require_spread(r, 2, -2, 0, cm_node_int(r->node, "transA") ? 1 : 0, reason);
}

CM_OP(Gemm, .require = gemm_require, .infer = gemm_infer, .prepare = gemm_prepare, .run = gemm_run,
      .grad = gemm_grad, .body = gemm_body, .cost.work = cm_work_product, .cost.flops = gemm_flops,
      .layer.weights = CM_OPERAND(0) | CM_OPERAND(1) | CM_OPERAND(2));
