/* SVMClassifier and SVMRegressor: sums of kernels of a row with support vectors, or linear forms
 * where there are none. Where ONNX's text leaves open what becomes of the sums, they do as ONNX
 * Runtime does. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/reals.h"
#include "ops/ml/class_labels.h"
#include "ops/ml/scores.h"

#include <math.h>

enum kernel { LINEAR, POLY, RBF, SIGMOID };

struct svm {
    enum kernel kernel;
    double gamma, offset, degree; /* kernel_params */
    struct cm_floats coefficients, vectors, rho, prob_a, prob_b;
    struct cm_int64s per_class;
    int64_t features, n_vectors; /* n_vectors 0: linear */
    int64_t classes, pairs;      /* of a classifier: as many classes as labels */
    struct cm_labels labels;
    enum cm_scores finish;
    bool one_class;
    bool positive; /* no coefficient is negative */
    struct cm_score_rows rows;
};

/* ---- reading ---- */

static enum cm_status read_kernel(const struct cm_node *node, struct svm *m, struct cm_error *err)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const struct cm_str name = cm_node_str(node, "kernel_type");
    const struct cm_floats params = cm_node_floats(node, "kernel_params");
    size_t kernel = 0;
    while (kernel < CM_COUNT(names) && !cm_str_is(name, names[kernel]))
        kernel++;
    if (kernel == CM_COUNT(names))
        return cm_fail(
            err, CM_BAD_MODEL,
            "attribute 'kernel_type' is '%.*s', expected 'LINEAR', 'POLY', 'RBF' or 'SIGMOID'",
            CM_STR_FMT(name));
    m->kernel = (enum kernel)kernel;
    if (params.count != 3 && (params.count || (m->n_vectors && m->kernel != LINEAR)))
        return cm_fail(err, CM_BAD_MODEL, "attribute 'kernel_params' has %zu elements, needs 3",
                       params.count);
    if (params.count) {
        m->gamma = (double)params.items[0];
        m->offset = (double)params.items[1];
        m->degree = (double)params.items[2];
    }
    return CM_OK;
}

static enum cm_status read_common(const struct cm_node *node, struct svm *m, struct cm_error *err)
{
    const struct cm_str finish = cm_node_str(node, "post_transform");
    m->coefficients = cm_node_floats(node, "coefficients");
    m->vectors = cm_node_floats(node, "support_vectors");
    m->rho = cm_node_floats(node, "rho");
    if (!cm_scores_parse(finish, &m->finish))
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'post_transform' is '%.*s', expected 'NONE', 'SOFTMAX', "
                       "'LOGISTIC', 'SOFTMAX_ZERO' or 'PROBIT'",
                       CM_STR_FMT(finish));
    if (m->rho.count == 0)
        return cm_fail(err, CM_BAD_MODEL, "attribute 'rho' has no elements");
    CM_TRY(read_kernel(node, m, err));
    if (m->n_vectors && (m->vectors.count == 0 || m->vectors.count % (uint64_t)m->n_vectors))
        return cm_fail(err, CM_BAD_MODEL, "there are %zu numbers for %lld support vectors",
                       m->vectors.count, (long long)m->n_vectors);
    m->features = m->n_vectors ? (int64_t)m->vectors.count / m->n_vectors : 0;
    return CM_OK;
}

static enum cm_status read_regressor(const struct cm_node *node, struct svm *m,
                                     struct cm_error *err)
{
    *m = (struct svm){.n_vectors = cm_node_int(node, "n_supports"),
                      .one_class = cm_node_int(node, "one_class") != 0};
    if (m->n_vectors < 0)
        return cm_fail(err, CM_BAD_MODEL, "attribute 'n_supports' is %lld, expected 0 or more",
                       (long long)m->n_vectors);
    CM_TRY(read_common(node, m, err));
    if (m->n_vectors == 0)
        m->features = (int64_t)m->coefficients.count;
    else if (m->coefficients.count != (uint64_t)m->n_vectors)
        return cm_fail(err, CM_BAD_MODEL, "there are %zu coefficients for %lld support vectors",
                       m->coefficients.count, (long long)m->n_vectors);
    return CM_OK;
}

/* Adds up vectors_per_class. */
static enum cm_status count_vectors(struct svm *m, struct cm_error *err)
{
    if (m->per_class.count != (uint64_t)m->classes)
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'vectors_per_class' has %zu elements for %lld class labels",
                       m->per_class.count, (long long)m->classes);
    for (size_t i = 0; i < m->per_class.count; i++)
        if (m->per_class.items[i] < 0 ||
            !cm_dim_add(m->n_vectors, m->per_class.items[i], &m->n_vectors))
            return cm_fail(err, CM_BAD_MODEL, "class %zu has %lld support vectors", i,
                           (long long)m->per_class.items[i]);
    return CM_OK;
}

static enum cm_status check_pairs(struct svm *m, struct cm_error *err)
{
    const uint64_t lists = m->coefficients.count / (uint64_t)m->n_vectors;
    if (m->classes < 2)
        return cm_fail(err, CM_BAD_MODEL, "it has %lld class labels, needs 2 or more",
                       (long long)m->classes);
    if (lists != (uint64_t)m->classes - 1 || m->coefficients.count % (uint64_t)m->n_vectors)
        return cm_fail(err, CM_BAD_MODEL,
                       "there are %zu coefficients for %lld classes and %lld support vectors",
                       m->coefficients.count, (long long)m->classes, (long long)m->n_vectors);
    if (!cm_dim_mul(m->classes, m->classes - 1, &m->pairs))
        return cm_fail(err, CM_LIMIT, "it has too many classes");
    m->pairs /= 2;
    if (m->rho.count < (uint64_t)m->pairs)
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'rho' has %zu elements for %lld pairs of classes", m->rho.count,
                       (long long)m->pairs);
    if (m->prob_a.count != m->prob_b.count ||
        (m->prob_a.count && m->prob_a.count < (uint64_t)m->pairs))
        return cm_fail(
            err, CM_BAD_MODEL,
            "attributes 'prob_a' and 'prob_b' have %zu and %zu elements for %lld pairs of classes",
            m->prob_a.count, m->prob_b.count, (long long)m->pairs);
    return CM_OK;
}

static enum cm_status read_classifier(const struct cm_node *node, struct svm *m,
                                      struct cm_error *err)
{
    *m = (struct svm){.labels = cm_labels_read(node, "classlabels_ints"),
                      .per_class = cm_node_ints(node, "vectors_per_class"),
                      .prob_a = cm_node_floats(node, "prob_a"),
                      .prob_b = cm_node_floats(node, "prob_b")};
    m->classes = (int64_t)m->labels.count;
    if (m->classes < 1)
        return cm_fail(err, CM_BAD_MODEL, "it has no class labels");
    if (m->per_class.count)
        CM_TRY(count_vectors(m, err));
    CM_TRY(read_common(node, m, err));
    if (m->n_vectors)
        return check_pairs(m, err);
    if (m->coefficients.count % (uint64_t)m->classes)
        return cm_fail(err, CM_BAD_MODEL, "%zu coefficients are not a multiple of %lld classes",
                       m->coefficients.count, (long long)m->classes);
    m->features = (int64_t)m->coefficients.count / m->classes;
    return CM_OK;
}

/* Pairs of classes are compared, and with prob_a become probabilities of classes. */
static int64_t score_count(const struct svm *m)
{
    return m->n_vectors == 0 || m->prob_a.count || m->classes == 2 ? m->classes : m->pairs;
}

/* ---- types ---- */

static enum cm_status regressor_infer(struct cm_infer *in)
{
    struct svm m;
    struct cm_dim dims[2] = {CM_DIM_ANY, CM_DIM(1)};
    CM_TRY(read_regressor(in->node, &m, in->err));
    CM_TRY(cm_infer_feature_rows(in, m.features, &dims[0]));
    return cm_infer_set_tensor(in, 0, CM_FLOAT, 2, dims);
}

static enum cm_status classifier_infer(struct cm_infer *in)
{
    struct svm m;
    struct cm_dim dims[2];
    CM_TRY(read_classifier(in->node, &m, in->err));
    CM_TRY(cm_infer_feature_rows(in, m.features, &dims[0]));
    dims[1] = CM_DIM(score_count(&m));
    CM_TRY(cm_infer_set_tensor(in, 0, cm_labels_type(&m.labels), 1, dims));
    return cm_infer_set_tensor(in, 1, CM_FLOAT, 2, dims);
}

/* ---- computing ---- */

/* For a row, its kernels, pairs, votes, and for probabilities three square matrices' worth. */
static enum cm_status reserve(struct cm_call *call, struct svm *m)
{
    const int64_t vectors = m->n_vectors ? m->n_vectors : m->classes + 1;
    int64_t products;
    size_t square;
    if (!cm_size_mul((size_t)m->classes + 2, m->prob_a.count ? 2 * (size_t)m->classes + 2 : 2,
                     &square))
        return cm_call_fail(call, CM_LIMIT, "it has too many classes");
    if (!cm_dim_mul(vectors, m->features, &products))
        products = INT64_MAX;
    return cm_score_rows_prepare(
        call, (size_t)m->features + (size_t)m->n_vectors + (size_t)m->pairs + square, products,
        &m->rows);
}

static double kernel(const struct svm *m, const double *x, const float *with)
{
    double sum = 0;
    for (int64_t i = 0; i < m->features; i++) {
        const double y = (double)with[i], difference = x[i] - y;
        sum += m->kernel == RBF ? difference * difference : x[i] * y;
    }
    switch (m->kernel) {
    case POLY:
        return pow(m->gamma * sum + m->offset, m->degree);
    case RBF:
        return exp(-m->gamma * sum);
    case SIGMOID:
        return tanh(m->gamma * sum + m->offset);
    default:
        return sum;
    }
}

static double product(const struct svm *m, const double *x, const float *with)
{
    double sum = 0;
    for (int64_t i = 0; i < m->features; i++)
        sum += x[i] * (double)with[i];
    return sum;
}

/* The kernels of a row with all support vectors, behind it. */
static const double *load_row(const struct svm *m, const struct cm_tensor *x, int64_t row,
                              double *scratch)
{
    double *kernels = scratch + m->features;
    cm_reals_load(x->type, x->data, row * m->features, m->features, scratch);
    for (int64_t v = 0; v < m->n_vectors; v++)
        kernels[v] = kernel(m, scratch, m->vectors.items + v * m->features);
    return kernels;
}

static void regress_row(const void *model, struct cm_call *call, int64_t row, double *scratch)
{
    const struct svm *m = model;
    const double *kernels = load_row(m, call->in[0], row, scratch);
    double sum = (double)m->rho.items[0];
    if (m->n_vectors == 0)
        sum += product(m, scratch, m->coefficients.items);
    for (int64_t v = 0; v < m->n_vectors; v++)
        sum += kernels[v] * (double)m->coefficients.items[v];
    if (m->one_class)
        sum = sum > 0 ? 1 : -1;
    cm_reals_store(CM_FLOAT, call->out[0]->data, row, 1, &sum);
}

/* One decision per pair of classes i < j: above 0 it is a vote for i. */
static void decide_pairs(const struct svm *m, const double *kernels, double *pairs, double *votes)
{
    int64_t pair = 0, first_i = 0;
    for (int64_t i = 0; i < m->classes; first_i += m->per_class.items[i++]) {
        int64_t first_j = first_i + m->per_class.items[i];
        for (int64_t j = i + 1; j < m->classes; first_j += m->per_class.items[j++], pair++) {
            const float *of_i = m->coefficients.items + (j - 1) * m->n_vectors;
            const float *of_j = m->coefficients.items + i * m->n_vectors;
            double sum = (double)m->rho.items[pair];
            for (int64_t v = first_i; v < first_i + m->per_class.items[i]; v++)
                sum += (double)of_i[v] * kernels[v];
            for (int64_t v = first_j; v < first_j + m->per_class.items[j]; v++)
                sum += (double)of_j[v] * kernels[v];
            pairs[pair] = sum;
            votes[sum > 0 ? i : j]++;
        }
    }
}

/* How surely a row is of the first class of a pair, kept away from 0 and 1. */
static double pair_probability(double decision, double a, double b)
{
    const double limit = 1e-7, p = 1 / (1 + exp(decision * a + b));
    return p < limit ? limit : p > 1 - limit ? 1 - limit : p;
}

/* Probabilities of classes from those of pairs, r[i][j] of i against j: the p that minimizes the
 * squares of r[j][i] p[i] - r[i][j] p[j], found one class after the other ("Probability Estimates
 * for Multi-class Classification by Pairwise Coupling" by Wu, Lin and Weng, the second method), as
 * closely as LIBSVM does it. */
static void couple(int64_t n, const double *r, double *q, double *qp, double *p)
{
    const int64_t rounds = n > 100 ? n : 100;
    const double enough = 0.005 / (double)n;
    for (int64_t i = 0; i < n; i++) {
        p[i] = 1 / (double)n;
        q[i * n + i] = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j == i)
                continue;
            q[i * n + i] += r[j * n + i] * r[j * n + i];
            q[i * n + j] = -r[j * n + i] * r[i * n + j];
        }
    }
    for (int64_t round = 0; round < rounds; round++) {
        double whole = 0, worst = 0;
        for (int64_t i = 0; i < n; i++) {
            qp[i] = 0;
            for (int64_t j = 0; j < n; j++)
                qp[i] += q[i * n + j] * p[j];
            whole += p[i] * qp[i];
        }
        for (int64_t i = 0; i < n; i++)
            worst = fabs(qp[i] - whole) > worst ? fabs(qp[i] - whole) : worst;
        if (worst < enough)
            return;
        for (int64_t i = 0; i < n; i++) {
            const double step = (whole - qp[i]) / q[i * n + i], scale = 1 + step;
            p[i] += step;
            whole = (whole + step * (step * q[i * n + i] + 2 * qp[i])) / (scale * scale);
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[i * n + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}

/* room: 2 * classes * classes + classes. */
static void find_probabilities(const struct svm *m, const double *pairs, double *room, double *p)
{
    const int64_t n = m->classes;
    double *r = room, *q = r + n * n, *qp = q + n * n;
    int64_t pair = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, pair++) {
            r[i * n + j] = pair_probability(pairs[pair], (double)m->prob_a.items[pair],
                                            (double)m->prob_b.items[pair]);
            r[j * n + i] = 1 - r[i * n + j];
        }
    couple(n, r, q, qp, p);
}

static int64_t largest(int64_t count, const double *items)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = items[i] > items[best] ? i : best;
    return best;
}

/* The largest score wins; but of two classes the second, whichever is larger, if the larger one is
 * above a threshold: ONNX's reference implementation and ONNX Runtime agree on that. */
static int64_t choose_linear(const struct svm *m, const double *scores)
{
    const int64_t best = largest(m->classes, scores);
    if (m->classes != 2)
        return best;
    return (m->positive ? scores[best] >= 0.5 : scores[best] > 0) ? 1 : best;
}

static void classify_row(const void *model, struct cm_call *call, int64_t row, double *scratch)
{
    const struct svm *m = model;
    const double *kernels = load_row(m, call->in[0], row, scratch);
    double *pairs = scratch + m->features + m->n_vectors, *votes = pairs + m->pairs;
    double *p = votes + m->classes, *room = p + m->classes + 2, *scores = p;
    int64_t best;
    if (m->n_vectors == 0) {
        for (int64_t c = 0; c < m->classes; c++)
            p[c] = (double)m->rho.items[0] +
                   product(m, scratch, m->coefficients.items + c * m->features);
        best = choose_linear(m, p);
        cm_scores_finish(m->finish, m->classes, p);
    } else {
        memset(votes, 0, (size_t)m->classes * sizeof *votes);
        decide_pairs(m, kernels, pairs, votes);
        best = largest(m->classes, votes);
        if (m->prob_a.count)
            find_probabilities(m, pairs, room, p);
        else if (m->classes > 2)
            scores = pairs;
        if (!m->prob_a.count && m->classes == 2)
            cm_scores_finish_pair(m->finish, m->finish != CM_SCORES_PLAIN, pairs[0], p);
        else
            cm_scores_finish(m->finish, score_count(m), scores);
    }
    cm_labels_store(call, &m->labels, row, (size_t)best);
    if (call->n_out > 1 && call->out[1])
        cm_reals_store(CM_FLOAT, call->out[1]->data, row * score_count(m), score_count(m), scores);
}

/* ---- the operators ---- */

static enum cm_status regressor_prepare(struct cm_call *call)
{
    struct svm *m = cm_call_state(call, sizeof *m);
    CM_TRY(read_regressor(call->node, m, call->err));
    return reserve(call, m);
}

static enum cm_status classifier_prepare(struct cm_call *call)
{
    struct svm *m = cm_call_state(call, sizeof *m);
    CM_TRY(read_classifier(call->node, m, call->err));
    m->positive = true;
    for (size_t i = 0; i < m->coefficients.count; i++)
        m->positive = m->positive && m->coefficients.items[i] >= 0;
    return reserve(call, m);
}

static enum cm_status regressor_run(struct cm_call *call)
{
    const struct svm *m = call->state;
    cm_score_rows_run(&m->rows, call, regress_row, m);
    return CM_OK;
}

static enum cm_status classifier_run(struct cm_call *call)
{
    const struct svm *m = call->state;
    cm_score_rows_run(&m->rows, call, classify_row, m);
    return CM_OK;
}

CM_OP_IN(ml, "ai.onnx.ml", SVMRegressor, .infer = regressor_infer, .prepare = regressor_prepare,
         .run = regressor_run, .grad = cm_grad_none);
CM_OP_IN(ml, "ai.onnx.ml", SVMClassifier, .infer = classifier_infer, .prepare = classifier_prepare,
         .run = classifier_run, .grad = cm_grad_none);
