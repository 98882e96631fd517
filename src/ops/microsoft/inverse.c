/* Inverse: inverses of square matrices, by Gauss-Jordan elimination with pivots. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "graph/node_formula.h"
#include "ops/common/reals.h"
#include "ops/matmul/square.h"

#include <math.h>

static enum cm_status inverse_infer(struct cm_infer *in)
{
    CM_TRY(cm_infer_square(in));
    return cm_infer_set(in, 0, cm_infer_type(in, 0));
}

/* Room for a matrix and its inverse. */
static enum cm_status inverse_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    size_t bytes;
    if (cm_tensor_count(call->in[0]) == 0)
        return CM_OK;
    if (!cm_size_mul((size_t)cm_shape_span(x, x->rank - 2, x->rank), 2 * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "its matrices are too large");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

/* Row operations that make a the identity make the identity the inverse. Of a singular matrix they
 * make what division by zero gives. */
static void invert(double *a, double *inverse, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        inverse[i] = i % (n + 1) == 0;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[pivot * n + c]))
                pivot = r;
        if (pivot != c) {
            cm_swap_rows(&a[pivot * n], &a[c * n], n);
            cm_swap_rows(&inverse[pivot * n], &inverse[c * n], n);
        }
        const double scale = 1 / a[c * n + c];
        for (int64_t i = 0; i < n; i++) {
            a[c * n + i] *= scale;
            inverse[c * n + i] *= scale;
        }
        for (int64_t r = 0; r < n; r++) {
            const double factor = a[r * n + c];
            if (r == c || factor == 0)
                continue;
            for (int64_t i = 0; i < n; i++) {
                a[r * n + i] -= factor * a[c * n + i];
                inverse[r * n + i] -= factor * inverse[c * n + i];
            }
        }
    }
}

static enum cm_status inverse_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const int64_t n = x->shape.dims[x->shape.rank - 1], size = n * n;
    const int64_t elements = cm_tensor_count(x);
    double *matrix = call->scratch, *inverse = matrix + size;
    for (int64_t at = 0; at < elements; at += size) {
        cm_reals_load(x->type, x->data, at, size, matrix);
        invert(matrix, inverse, n);
        cm_reals_store(y->type, y->data, at, size, inverse);
    }
    return CM_OK;
}

/* From x y = 1: dx = -y' dy y'. */
CM_GRADIENT(inverse_grad, "t = Einsum<equation='...ij->...ji'>(Y);"
                          "dX = -MatMul(MatMul(t, dY), t)")

CM_OP_IN(microsoft, "com.microsoft", Inverse, .infer = inverse_infer, .prepare = inverse_prepare,
         .run = inverse_run, .grad = inverse_grad);
