/* How good predictions are, gathered batch by batch: accuracy and its kin of classifiers, errors of
 * regressions, losses. What is kept does not grow with the number of samples.
 *
 * Definitions are those of scikit-learn, so that numbers compare. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EVALUATE_METRICS_H
#define CM_EVALUATE_METRICS_H

#include "base/array.h"
#include "tensor/tensor.h"

struct cm_metrics;

struct cm_metrics_options {
    /* Parted by commas: loss, accuracy, top-K, confusion, precision, recall, f1 (these three also
     * with -macro, -micro or -weighted), auc, auc-weighted, mae, mse, rmse, r2. NULL: what fits. */
    const char *names;
    const char *loss;                /* a file of data/training/losses/; NULL: none */
    int64_t class_axis;              /* of scores */
    int64_t ignored;                 /* targets that do not count */
    const int64_t *names_of_classes; /* by column of the scores, lent; NULL: 0, 1, .. */
    size_t n_classes;
};

/* *out is the caller's to free. Unknown names are told all at once. */
enum cm_status cm_metrics_new(const struct cm_metrics_options *options, struct cm_metrics **out,
                              struct cm_error *err) CM_MUST_CHECK;
void cm_metrics_free(struct cm_metrics *metrics); /* NULL is fine */

/* What classes the columns of scores stand for, as the model says; before the first batch counts,
 * and must not change. Copied. */
enum cm_status cm_metrics_set_classes(struct cm_metrics *metrics, const int64_t *classes,
                                      size_t count, struct cm_error *err) CM_MUST_CHECK;
/* The first rows of a batch: labels that the model chose, its scores, or both; the others are NULL.
 * The first batch decides whether they are classes or numbers. */
enum cm_status cm_metrics_add(struct cm_metrics *metrics, const struct cm_tensor *labels,
                              const struct cm_tensor *scores, const struct cm_tensor *targets,
                              int64_t rows, struct cm_error *err) CM_MUST_CHECK;
/* A loss that somebody else computed, the mean of so many rows. */
void cm_metrics_add_loss(struct cm_metrics *metrics, double loss, int64_t rows);
/* Rows of which nothing but the loss is known. */
void cm_metrics_add_rows(struct cm_metrics *metrics, int64_t rows);

struct cm_metric {
    char name[32];
    const char *average; /* over classes: "macro", "micro", "weighted", "class 1"; "": none */
    double value;        /* NaN: not defined for this data */
    double bound;        /* by how much it may be wrong; 0: it is exact */
};

struct cm_class_count {
    int64_t label;
    uint64_t actual, predicted, correct;
};

struct cm_metrics_result {
    struct cm_metric *items;
    size_t count;
    struct cm_class_count *classes; /* that occur, by label */
    size_t n_classes;
    uint64_t *confusion; /* actual by predicted, of those; NULL: not asked for */
    int64_t samples;     /* rows */
    bool probabilities;  /* cross-entropy found scores to be probabilities already */
};

/* What has come so far. Fails when a metric that was named does not fit what is predicted. */
enum cm_status cm_metrics_result(const struct cm_metrics *metrics, struct cm_arena *arena,
                                 struct cm_metrics_result *out, struct cm_error *err) CM_MUST_CHECK;

/* ---- the area under the ROC curve ----
 *
 * Exact while there are few scores; then the scores so far are cut into bins of equal size, and two
 * scores of one bin count as equal, which the bound accounts for. */

struct cm_ranking {
    CM_ARRAY(struct cm_ranked); /* sorted bins once binned; not an arena's */
    size_t most;
    bool binned;
};

/* most: so many scores are kept. */
enum cm_status cm_ranking_add(struct cm_ranking *ranking, double score, bool positive, size_t most,
                              struct cm_error *err) CM_MUST_CHECK;
void cm_ranking_release(struct cm_ranking *ranking);
/* NaN when there are no positives, or nothing else. Sorts. positives may be NULL. */
double cm_ranking_area(struct cm_ranking *ranking, double *bound, double *positives);

#endif
