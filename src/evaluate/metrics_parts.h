/* What the files of metrics share. Not for other files. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_EVALUATE_METRICS_PARTS_H
#define CM_EVALUATE_METRICS_PARTS_H

#include "evaluate/metrics.h"
#include "train/rules.h"

enum cm_task { CM_TASK_UNDECIDED, CM_TASK_CLASSES, CM_TASK_BINARY, CM_TASK_NUMBERS };

enum cm_measure {
    CM_MEASURE_LOSS,
    CM_MEASURE_ACCURACY,
    CM_MEASURE_TOP,
    CM_MEASURE_CONFUSION,
    CM_MEASURE_PRECISION,
    CM_MEASURE_RECALL,
    CM_MEASURE_F1,
    CM_MEASURE_AUC,
    CM_MEASURE_MAE,
    CM_MEASURE_MSE,
    CM_MEASURE_RMSE,
    CM_MEASURE_R2
};

enum cm_average { CM_AVERAGE_BY_TASK, CM_AVERAGE_MACRO, CM_AVERAGE_MICRO, CM_AVERAGE_WEIGHTED };

enum { CM_WISHES_MAX = 32 };

struct cm_metric_wish {
    enum cm_measure measure;
    enum cm_average average;
    int64_t k; /* of top-K */
    uint64_t hits;
};

/* Kept sorted by label. id: its row and column in the matrix. */
struct cm_known_class {
    struct cm_class_count count;
    size_t id, column;
};

/* One of the numbers of a row; mean and spread of its targets after Welford. */
struct cm_error_column {
    double absolute, squared, mean, spread;
};

/* Scores and targets that a loss has not been computed of yet. */
struct cm_gathered {
    double *x, *y;
    int64_t *classes; /* instead of y */
    int64_t columns;  /* scores of a row */
    size_t count, room;
};

struct cm_metrics {
    struct cm_metric_wish wishes[CM_WISHES_MAX];
    size_t n_wishes;
    bool named;                      /* by the caller; otherwise they follow from the task */
    const struct cm_loss_rule *loss; /* NULL: none */
    int64_t class_axis, ignored;
    enum cm_task task;
    bool has_scores;

    struct cm_gathered gathered;
    enum cm_dtype loss_dtype; /* of the scores as they came */
    double loss_sum, loss_weight;
    bool probabilities, knows_scores;
    int64_t samples;
    uint64_t judged;

    struct cm_known_class *classes;
    size_t n_classes, room, n_columns;
    bool classes_fixed;
    int64_t *by_column;
    uint64_t *matrix; /* room by room */
    struct cm_ranking *rankings;
    size_t n_rankings;

    struct cm_error_column *columns;
    size_t n_numbers; /* columns */
};

/* Scores of one position: every one `step` after the other. */
struct cm_score_position {
    const struct cm_tensor *scores;
    int64_t first, step, count;
};

/* metrics_names.c: what is asked for. */
extern const char *const cm_measure_names[], *const cm_average_names[];
enum cm_status cm_metrics_read_names(struct cm_metrics *m, const char *names,
                                     struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_metrics_read_loss(struct cm_metrics *m, const char *name,
                                    struct cm_error *err) CM_MUST_CHECK;
bool cm_metrics_wants(const struct cm_metrics *m, enum cm_measure measure);
/* Something that only classifiers have. */
bool cm_metrics_wants_classes(const struct cm_metrics *m);
/* Once the task is known: what is usual for it, and whether what was named fits it. */
void cm_metrics_wish_by_task(struct cm_metrics *m);
enum cm_status cm_metrics_check_wishes(const struct cm_metrics *m,
                                       struct cm_error *err) CM_MUST_CHECK;

/* metrics_classes.c: the classes there are, sorted by label. */
enum cm_status cm_metrics_no_memory(struct cm_error *err) CM_MUST_CHECK;
/* Where the label is, or would be. */
size_t cm_metrics_place(const struct cm_metrics *m, int64_t label);
bool cm_metrics_knows(const struct cm_metrics *m, size_t place, int64_t label);
enum cm_status cm_metrics_add_class(struct cm_metrics *m, int64_t label, size_t column,
                                    struct cm_error *err) CM_MUST_CHECK;
/* There are as many as scores have columns. */
enum cm_status cm_metrics_fix_classes(struct cm_metrics *m, size_t columns,
                                      struct cm_error *err) CM_MUST_CHECK;
/* The place of a label that came as any kind of number. */
enum cm_status cm_metrics_class(struct cm_metrics *m, double number, int64_t row, const char *what,
                                size_t *out, struct cm_error *err) CM_MUST_CHECK;
void cm_metrics_count(struct cm_metrics *m, size_t actual, size_t predicted);

/* metrics_loss.c */
double cm_score_at(const struct cm_score_position *p, int64_t column);
bool cm_is_distribution(const struct cm_score_position *p);
/* The loss of a position, or of a number, or of the first rows of a batch. */
enum cm_status cm_metrics_lose_class(struct cm_metrics *m, const struct cm_score_position *p,
                                     int64_t column, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_metrics_lose_number(struct cm_metrics *m, double x, double target,
                                      struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_metrics_lose_rows(struct cm_metrics *m, const struct cm_tensor *scores,
                                    const struct cm_tensor *targets, int64_t rows,
                                    struct cm_error *err) CM_MUST_CHECK;
/* At the end of a batch. */
enum cm_status cm_metrics_finish_loss(struct cm_metrics *m, struct cm_error *err) CM_MUST_CHECK;

#endif
