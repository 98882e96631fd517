/* Det: determinants of square matrices, by elimination with pivots. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "ops/common/reals.h"
#include "ops/matmul/square.h"

#include <math.h>

static enum cm_status det_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    CM_TRY(cm_infer_square(in));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set(in, 0, x);
    return cm_infer_set_tensor(in, 0, x->dtype, x->rank - 2, x->dims);
}

static enum cm_status det_prepare(struct cm_call *call)
{
    const struct cm_shape *x = &call->in[0]->shape;
    if (cm_tensor_count(call->in[0]) > 0)
        cm_call_scratch(call, (size_t)cm_shape_span(x, x->rank - 2, x->rank) * sizeof(double));
    return CM_OK;
}

/* Makes a upper triangular; the product of what is then on the diagonal is the determinant. */
static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[pivot * n + c]))
                pivot = r;
        if (a[pivot * n + c] == 0)
            return 0;
        if (pivot != c) {
            cm_swap_rows(&a[pivot * n], &a[c * n], n);
            det = -det;
        }
        det *= a[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            const double factor = a[r * n + c] / a[c * n + c];
            for (int64_t i = c + 1; i < n; i++)
                a[r * n + i] -= factor * a[c * n + i];
        }
    }
    return det;
}

static enum cm_status det_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    struct cm_tensor *y = call->out[0];
    const int64_t n = x->shape.dims[x->shape.rank - 1], count = cm_tensor_count(y);
    for (int64_t i = 0; i < count; i++) {
        if (n > 0)
            cm_reals_load(x->type, x->data, i * n * n, n * n, call->scratch);
        const double det = determinant(call->scratch, n);
        cm_reals_store(y->type, y->data, i, 1, &det);
    }
    return CM_OK;
}

/* d det / d x[i][j] is the cofactor: the determinant without row i and column j, with the sign of
 * (-1)^(i + j). No inverse is needed, so singular matrices have it too. All n * n of them are made
 * at once: row i of `others` holds the rows, or columns, that are left without i. */
static enum cm_status det_grad(struct cm_grad *g)
{
    const int rank = cm_builder_type(&g->build, cm_grad_input(g, 0))->rank;
    if (rank == CM_RANK_UNKNOWN || rank + 2 > CM_MAX_RANK)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of input 0");
    return cm_grad_formula(
        g,
        "count(n) = Range(0, n, 1); n = Squeeze(Shape<start=%d>(X), [0]);"
        "column = Unsqueeze(count(n - 0), [1]); row = count(n - 0); left = count(n - 1);"
        "others = left + int64(GreaterOrEqual(left, column));"
        "both = Gather<axis=%d>(Gather<axis=%d>(X, others), others);"
        /* (.., i, rows, j, columns) to (.., i, j, rows, columns) */
        "minors = Det(Transpose<perm=[0 to %d, %d, %d, %d]>(both)); odd = Mod(row + column, [2]);"
        "sign = CastLike([1] - odd * [2], X);"
        "dy = Unsqueeze(dY, [-2, -1]); dX = minors * sign * dy",
        rank - 1, rank, rank - 2, rank - 2, rank, rank - 1, rank + 1);
}

CM_OP(Det, .infer = det_infer, .prepare = det_prepare, .run = det_run, .grad = det_grad);
