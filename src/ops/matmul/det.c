/* Det: determinants of square matrices, by elimination with pivots. */
// SPDX-License-Identifier: Apache-2.0
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

/* The numbers 0 to n - 1, or to n - 2, as a row or a column of int64. */
static cm_value count_up(struct cm_grad *g, cm_value n, int64_t less, bool column)
{
    const cm_value end = cm_emit(g, "Sub", n, cm_build_int64(&g->build, less));
    const cm_value list =
        cm_emit(g, "Range", cm_build_int64(&g->build, 0), end, cm_build_int64(&g->build, 1));
    return column ? cm_emit(g, "Unsqueeze", list, cm_emit_int64s(g, 1)) : list;
}

/* d det / d x[i][j] is the cofactor: the determinant without row i and column j, with the sign of
 * (-1)^(i + j). No inverse is needed, so singular matrices have it too. All n * n of them are made
 * at once: row i of `others` holds the rows, or columns, that are left without i. */
static enum cm_status det_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value x = cm_grad_input(g, 0);
    const int rank = cm_builder_type(&g->build, x)->rank;
    int64_t perm[CM_MAX_RANK];
    if (rank == CM_RANK_UNKNOWN || rank + 2 > CM_MAX_RANK)
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "the gradient needs to know the rank of input 0");
    const cm_value zero = cm_emit_int64s(g, 0);
    const cm_value n = cm_emit(
        g, "Squeeze",
        cm_emit_with(g, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "start", rank - 1)), x), zero);
    const cm_value column = count_up(g, n, 0, true), row = count_up(g, n, 0, false);
    const cm_value left = count_up(g, n, 1, false);
    const cm_value behind =
        cm_emit_with(g, "Cast", CM_ATTRIBUTES(cm_attr_int(arena, "to", CM_INT64)),
                     cm_emit(g, "GreaterOrEqual", left, column));
    const cm_value others = cm_emit(g, "Add", left, behind);
    const cm_value rows =
        cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", rank - 2)), x, others);
    const cm_value both =
        cm_emit_with(g, "Gather", CM_ATTRIBUTES(cm_attr_int(arena, "axis", rank)), rows, others);
    for (int i = 0; i < rank + 2; i++)
        perm[i] = i;
    perm[rank - 1] = rank; /* (.., i, rows, j, columns) to (.., i, j, rows, columns) */
    perm[rank] = rank - 1;
    const cm_value minors = cm_emit(
        g, "Det",
        cm_emit_with(g, "Transpose",
                     CM_ATTRIBUTES(cm_attr_ints(arena, "perm", (size_t)rank + 2, perm)), both));
    const cm_value odd = cm_emit(g, "Mod", cm_emit(g, "Add", row, column), cm_emit_int64s(g, 2));
    const cm_value sign = cm_emit(
        g, "CastLike",
        cm_emit(g, "Sub", cm_emit_int64s(g, 1), cm_emit(g, "Mul", odd, cm_emit_int64s(g, 2))), x);
    const cm_value dy = cm_emit(g, "Unsqueeze", cm_grad_incoming(g, 0), cm_emit_int64s(g, -2, -1));
    return cm_grad_set(g, 0, cm_emit(g, "Mul", cm_emit(g, "Mul", minors, sign), dy));
}

CM_OP(Det, .infer = det_infer, .prepare = det_prepare, .run = det_run, .grad = det_grad);
