/* MaxPool and GlobalMaxPool, and the operator that scatters a gradient through the indices of the
 * maxima. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/pool/planes.h"
#include "ops/pool/pool_grad.h"
#include "tensor/half.h"

#include <math.h>

struct maxpool {
    struct cm_planes planes;
    int64_t index_strides[CM_MAX_RANK]; /* of a spatial position in Indices, row- or column-major */
};

static enum cm_status maxpool_prepare(struct cm_call *call)
{
    struct maxpool *pool = cm_call_state(call, sizeof *pool);
    CM_TRY(cm_planes_plan(call, false, &pool->planes));
    const bool column_major = cm_node_int(call->node, "storage_order") != 0;
    uint64_t stride = 1; /* may wrap in an empty tensor, which has no indices */
    for (int i = 0; i < pool->planes.window.rank; i++) {
        pool->index_strides[i] = column_major ? (int64_t)stride : pool->planes.x_strides[i];
        stride *= (uint64_t)pool->planes.in[i];
    }
    return CM_OK;
}

static enum cm_status globalmaxpool_prepare(struct cm_call *call)
{
    struct maxpool *pool = cm_call_state(call, sizeof *pool);
    return cm_planes_plan(call, true, &pool->planes);
}

#define T         float
#define LOWEST    -INFINITY
#define IS_NAN(x) isnan(x)
#define FOR(name) float_##name
#include "ops/pool/max_plane.inc"
#define T         double
#define LOWEST    -INFINITY
#define IS_NAN(x) isnan(x)
#define FOR(name) double_##name
#include "ops/pool/max_plane.inc"
#define T         int8_t
#define LOWEST    INT8_MIN
#define IS_NAN(x) false
#define FOR(name) int8_##name
#include "ops/pool/max_plane.inc"
#define T         uint8_t
#define LOWEST    0
#define IS_NAN(x) false
#define FOR(name) uint8_##name
#include "ops/pool/max_plane.inc"

static cm_plane_fn *const maxpool_planes[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = float_plane,
    [CM_DOUBLE] = double_plane,
    [CM_INT8] = int8_plane,
    [CM_UINT8] = uint8_plane,
};

static enum cm_status maxpool_run(struct cm_call *call)
{
    const struct maxpool *pool = call->state;
    return cm_planes_run(call, &pool->planes, maxpool_planes);
}

CM_OP(MaxPool, .infer = cm_planes_infer, .prepare = maxpool_prepare, .run = maxpool_run,
      .grad = cm_pool_grad);

/* To the first maximum of each plane, its spatial axes laid in one row. */
CM_GRADIENT(globalmaxpool_grad,
            "shape = Shape(X); rows = Reshape(X, [0, 0, -1]); dy = Reshape(dY, [0, 0, 1]);"
            "best = ArgMax<axis=2>(rows); zeros = Expand(like(X, 0), Shape(rows));"
            "put = ScatterElements<axis=2>(zeros, best, dy); dX = Reshape<allowzero=1>(put, shape)")

CM_OP(GlobalMaxPool, .infer = cm_planes_infer_global, .prepare = globalmaxpool_prepare,
      .run = maxpool_run, .grad = globalmaxpool_grad);

/* ---- ai.cameo::MaxPoolGrad (dY, Indices, X_shape) -> dX: dX[Indices[i]] += dY[i] ---- */

static enum cm_status maxpool_grad_infer(struct cm_infer *in)
{
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    struct cm_known shape;
    struct cm_dim dims[CM_MAX_RANK];
    if (!cm_infer_known(in, 2, &shape) || shape.count > CM_MAX_RANK)
        return cm_infer_set_tensor(in, 0, dtype, CM_RANK_UNKNOWN, NULL);
    for (size_t i = 0; i < shape.count; i++)
        dims[i] = cm_quantity_dim(shape.items[i]);
    return cm_infer_set_tensor(in, 0, dtype, (int)shape.count, dims);
}

static enum cm_status maxpool_grad_prepare(struct cm_call *call)
{
    const struct cm_tensor *dx = call->out[0];
    if (cm_dtype_is_narrow(dx->type)) /* windows may overlap: sums are made in float */
        cm_call_scratch(call, (size_t)cm_tensor_count(dx) * sizeof(float));
    return CM_OK;
}

static enum cm_status maxpool_grad_run(struct cm_call *call)
{
    const struct cm_tensor *dy = call->in[0], *indices = call->in[1];
    struct cm_tensor *dx = call->out[0];
    const int64_t n = cm_tensor_count(dy), size = cm_tensor_count(dx), *at = indices->data;
    const bool narrow = cm_dtype_is_narrow(dx->type);
    if (cm_tensor_count(indices) != n)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "%lld gradients but %lld indices", (long long)n,
                            (long long)cm_tensor_count(indices));
    for (int64_t i = 0; i < n; i++)
        if (at[i] < 0 || at[i] >= size)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "index %lld is outside a tensor of %lld",
                                (long long)at[i], (long long)size);
    if (dx->type == CM_DOUBLE) {
        double *sum = dx->data;
        const double *from = dy->data;
        memset(sum, 0, (size_t)size * sizeof *sum);
        for (int64_t i = 0; i < n; i++)
            sum[at[i]] += from[i];
        return CM_OK;
    }
    float *sum = narrow ? call->scratch : dx->data;
    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t i = 0; i < n; i++)
        sum[at[i]] += (float)cm_tensor_real(dy, i);
    if (narrow)
        cm_narrow_store(dx->type, dx->data, 0, size, sum);
    return CM_OK;
}

/* Linear in dY: its own gradient takes the elements back from where they went. */
CM_GRADIENT(maxpool_grad_grad, "d_dY = Gather(Reshape(d_dX, [-1]), Indices)")

CM_OP_IN(cameo, "ai.cameo", MaxPoolGrad, .infer = maxpool_grad_infer,
         .prepare = maxpool_grad_prepare, .run = maxpool_grad_run, .grad = maxpool_grad_grad);
