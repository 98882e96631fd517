/* Transforms of rows of scores. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/scores.h"

#include "base/number.h"
#include "base/parallel.h"

#include <math.h>

bool cm_scores_parse(struct cm_str name, enum cm_scores *out)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    for (int i = 0; i < 5; i++) {
        if (cm_str_is(name, names[i])) {
            *out = (enum cm_scores)i;
            return true;
        }
    }
    return false;
}

/* Zeros, with skip_zeros, stay: they are the classes without a score. */
static void softmax(int64_t count, double *row, bool skip_zeros)
{
    double most = (double)-INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = row[i] > most ? row[i] : most;
    for (int64_t i = 0; i < count; i++) {
        const bool zero = skip_zeros && fabs(row[i]) <= 1e-7;
        row[i] = zero ? row[i] * exp(-most) : exp(row[i] - most);
        sum += row[i];
    }
    for (int64_t i = 0; i < count; i++)
        row[i] = sum == 0 ? 0.5 : row[i] / sum;
}

/* The inverse of the normal distribution, by Winitzki's formula for that of erf: infinite at 0 and
 * 1, and NaN outside. */
static double probit(double p)
{
    const double x = 2 * p - 1, a = 0.147, pi = 3.14159265358979323846;
    const double rest = log((1 - x) * (1 + x)), v = 2 / (pi * a) + rest / 2;
    if (isinf(rest))
        return x < 0 ? (double)-INFINITY : (double)INFINITY;
    return (x < 0 ? -1 : 1) * sqrt(2) * sqrt(sqrt(v * v - rest / a) - v);
}

void cm_scores_finish(enum cm_scores how, int64_t count, double *row)
{
    if (how == CM_SCORES_SOFTMAX || how == CM_SCORES_SOFTMAX_ZERO)
        softmax(count, row, how == CM_SCORES_SOFTMAX_ZERO);
    for (int64_t i = 0; i < count; i++) {
        if (how == CM_SCORES_LOGISTIC)
            row[i] = 1 / (1 + exp(-row[i]));
        else if (how == CM_SCORES_PROBIT)
            row[i] = probit(row[i]);
    }
}

void cm_scores_finish_targets(enum cm_scores how, int64_t count, double *row)
{
    if (count > 1 || how == CM_SCORES_PROBIT)
        cm_scores_finish(how, count, row);
}

void cm_scores_finish_pair(enum cm_scores how, bool probability, double s, double *row)
{
    row[0] = probability && how != CM_SCORES_LOGISTIC ? 1 - s : -s;
    row[1] = s;
    if (how == CM_SCORES_LOGISTIC || how == CM_SCORES_PROBIT)
        cm_scores_finish(how, 2, row);
}

enum cm_status cm_infer_feature_rows(struct cm_infer *in, int64_t features, struct cm_dim *rows)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim both;
    *rows = CM_DIM_ANY;
    if (x->rank == CM_RANK_UNKNOWN)
        return CM_OK;
    CM_TRY(cm_infer_rank(in, 0, 1, 2));
    if (!cm_dim_unify(x->dims[x->rank - 1], CM_DIM(features), &both))
        return cm_infer_fail(in, "input 0 has %lld features, the model is for %lld",
                             (long long)x->dims[x->rank - 1].value, (long long)features);
    *rows = x->rank == 2 ? x->dims[0] : CM_DIM(1);
    return CM_OK;
}

enum { PARTS = 64, PART_PRODUCTS = 8192 }; /* parts, at most; products in one, at least */

enum cm_status cm_score_rows_prepare(struct cm_call *call, size_t doubles, int64_t products,
                                     struct cm_score_rows *out)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    const int64_t parts =
        products < PART_PRODUCTS ? rows / (PART_PRODUCTS / (products + 1) + 1) + 1 : rows;
    size_t bytes;
    *out = (struct cm_score_rows){rows, parts < PARTS ? parts : PARTS, doubles};
    if (!cm_size_mul(doubles, (size_t)out->parts * sizeof(double), &bytes))
        return cm_call_fail(call, CM_LIMIT, "the scores of a row take too much memory");
    cm_call_scratch(call, bytes);
    return CM_OK;
}

struct scoring {
    const struct cm_score_rows *rows;
    struct cm_call *call;
    cm_score_row_fn *score;
    const void *model;
};

static void score_parts(void *arg, int64_t begin, int64_t end)
{
    const struct scoring *s = arg;
    for (int64_t part = begin; part < end; part++) {
        double *scratch = (double *)s->call->scratch + (size_t)part * s->rows->doubles;
        const int64_t last = s->rows->rows * (part + 1) / s->rows->parts;
        for (int64_t row = s->rows->rows * part / s->rows->parts; row < last; row++)
            s->score(s->model, s->call, row, scratch);
    }
}

void cm_score_rows_run(const struct cm_score_rows *rows, struct cm_call *call,
                       cm_score_row_fn *score, const void *model)
{
    struct scoring s = {rows, call, score, model};
    cm_parallel(rows->parts, 1, score_parts, &s);
}
