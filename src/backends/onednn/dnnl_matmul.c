/* Matrix products: MatMul and Gemm. Constant right operands are packed once. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_product.h"
#include "graph/backend.h"

static void set_matrix(struct cm_dnnl_operand *operand, int64_t rows, int64_t columns,
                       bool transposed)
{
    operand->rank = 2;
    operand->dims[0] = rows;
    operand->dims[1] = columns;
    operand->strides[0] = transposed ? 1 : columns;
    operand->strides[1] = transposed ? rows : 1;
}

/* ---- MatMul ---- */

static int64_t dim_from_end(const struct cm_shape *shape, int i)
{
    return i < shape->rank ? shape->dims[shape->rank - 1 - i] : 1;
}

/* As operand of `rank` axes, missing batch axes being 1. */
static void set_batched(struct cm_dnnl_operand *operand, const struct cm_shape *shape, int rank)
{
    operand->rank = rank;
    for (int i = 0; i < rank; i++)
        operand->dims[rank - 1 - i] = dim_from_end(shape, i);
}

static bool follow(struct cm_call *call, const struct cm_dnnl_product *product,
                   struct cm_dnnl_matmul *matmul)
{
    return cm_dnnl_set_followers(call, product, CM_DNNL_CHANNELS_AT_END, &matmul->y, &matmul->bias,
                                 &matmul->posts);
}

static struct cm_dnnl_matmul matmul_of(const struct cm_dnnl_product *product)
{
    return (struct cm_dnnl_matmul){
        .a = {.place = CM_DNNL_IN(product->in[0])},
        .b = {.place = CM_DNNL_IN(product->in[1])},
        .y = {.place = CM_DNNL_OUT(0)},
    };
}

bool cm_dnnl_accept_matmul(struct cm_call *call, const struct cm_dnnl_product *product)
{
    if (!cm_dnnl_suits(call))
        return false;
    const struct cm_shape *a = &call->in[product->in[0]]->shape;
    const struct cm_shape *b = &call->in[product->in[1]]->shape;
    if (a->rank < 2 || b->rank < 2)
        return cm_call_decline(call, "one of the operands is a vector");
    struct cm_dnnl_matmul matmul = matmul_of(product);
    const int64_t m = dim_from_end(a, 1), k = dim_from_end(a, 0);
    const int64_t n = dim_from_end(b, product->turned);
    if (cm_shape_span(b, 0, b->rank - 2) == 1) { /* the batches of the left operand are more rows */
        const int64_t rows = cm_shape_span(a, 0, a->rank - 2) * m;
        set_matrix(&matmul.a, rows, k, false);
        set_matrix(&matmul.b, k, n, product->turned);
        set_matrix(&matmul.y, rows, n, false);
        if (cm_call_is_constant(call, product->in[1]))
            matmul.b.order = CM_DNNL_FREE;
        return follow(call, product, &matmul) && cm_dnnl_make_matmul(call, &matmul);
    }
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    if (rank > CM_DNNL_MAX_RANK)
        return cm_call_decline(call, "an operand is a scalar or has more than %d axes",
                               CM_DNNL_MAX_RANK);
    set_batched(&matmul.a, a, rank);
    set_batched(&matmul.b, b, rank);
    set_batched(&matmul.y, &call->out[0]->shape, rank);
    return follow(call, product, &matmul) && cm_dnnl_make_matmul(call, &matmul);
}

static bool matmul_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_matmul(call, &product);
}

CM_KERNEL(onednn, MatMul, .label = "oneDNN product", .accepts = matmul_accepts, CM_DNNL_RUNS);

/* ---- Gemm ---- */

/* C as bias: one row that repeats. */
static bool set_bias(struct cm_call *call, const struct cm_dnnl_product *product, int64_t n,
                     struct cm_dnnl_matmul *matmul)
{
    const struct cm_tensor *c = product->in[2] >= 0 ? call->in[product->in[2]] : NULL;
    const float alpha = cm_node_float(product->node, "alpha");
    const float beta = cm_node_float(product->node, "beta");
    if (!c || beta == 0)
        return true;
    if (alpha != 1 || beta != 1)
        return cm_call_decline(call, "alpha or beta is not 1");
    if (c->shape.rank < 1 || dim_from_end(&c->shape, 0) != n || dim_from_end(&c->shape, 1) != 1)
        return cm_call_decline(call, "C is not one row");
    matmul->bias = (struct cm_dnnl_operand){.place = CM_DNNL_IN(product->in[2])};
    set_matrix(&matmul->bias, 1, n, false);
    return true;
}

bool cm_dnnl_accept_gemm(struct cm_call *call, const struct cm_dnnl_product *product)
{
    if (!cm_dnnl_suits(call))
        return false;
    const bool trans_a = cm_node_int(product->node, "transA") != 0;
    const bool trans_b = cm_node_int(product->node, "transB") != 0;
    const float alpha = cm_node_float(product->node, "alpha");
    const struct cm_shape *a = &call->in[product->in[0]]->shape, *y = &call->out[0]->shape;
    const int64_t m = y->dims[0], n = y->dims[1], k = a->dims[trans_a ? 0 : 1];
    struct cm_dnnl_matmul matmul = matmul_of(product);
    set_matrix(&matmul.a, m, k, trans_a);
    set_matrix(&matmul.b, k, n, trans_b);
    set_matrix(&matmul.y, m, n, false);
    if (!set_bias(call, product, n, &matmul))
        return false;
    if (alpha != 1)
        matmul.posts.items[matmul.posts.count++] =
            (struct cm_dnnl_post){.function = CM_DNNL_LINEAR, .a = alpha};
    if (cm_call_is_constant(call, product->in[1]))
        matmul.b.order = CM_DNNL_FREE;
    return follow(call, product, &matmul) && cm_dnnl_make_matmul(call, &matmul);
}

static bool gemm_accepts(struct cm_call *call)
{
    const struct cm_dnnl_product product = cm_dnnl_lone_product(call);
    return cm_dnnl_accept_gemm(call, &product);
}

CM_KERNEL(onednn, Gemm, .label = "oneDNN product", .accepts = gemm_accepts, CM_DNNL_RUNS);
