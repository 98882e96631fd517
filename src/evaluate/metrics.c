/* Metrics of a stream of predictions: batch after batch is judged. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "evaluate/metrics_parts.h"

#include <math.h>

enum {
    KEPT_SCORES = 1 << 20, /* of all classes together, and at least LEAST_SCORES of each */
    LEAST_SCORES = 1 << 10
};

static bool is_ignored(const struct cm_metrics *m, double target)
{
    return target == (double)m->ignored;
}

/* How the tensors of a batch fit together: rows of `per_row` targets. */
struct batch {
    const struct cm_tensor *labels, *scores, *targets;
    int64_t rows, per_row;
    int64_t first_row; /* of the whole, for messages */
};

/* Numbers of a row; -1: there are not even rows. */
static int64_t row_size(const struct cm_tensor *t, int64_t rows)
{
    if (!t || t->shape.rank < 1 || t->shape.dims[0] < rows)
        return -1;
    return cm_shape_span(&t->shape, 1, t->shape.rank);
}

static bool is_real(const struct cm_tensor *t)
{
    const enum cm_dtype_class kind = cm_dtype_info(t->type)->kind;

    return kind == CM_CLASS_FLOAT || kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED ||
           kind == CM_CLASS_BOOL;
}

/* (N, .., C, ..) with as many positions as there are targets. */
static bool find_position(const struct cm_metrics *m, const struct batch *b,
                          struct cm_score_position *out)
{
    const struct cm_shape *shape = &b->scores->shape;
    const int64_t axis = m->class_axis < 0 ? m->class_axis + shape->rank : m->class_axis;

    if (axis < 1 || axis >= shape->rank)
        return false;
    *out = (struct cm_score_position){.scores = b->scores,
                                      .step = cm_shape_span(shape, (int)axis + 1, shape->rank),
                                      .count = shape->dims[axis]};
    return out->count > 0 && cm_shape_span(shape, 1, shape->rank) == b->per_row * out->count;
}

/* Position i of all of a batch. */
static void go_to(struct cm_score_position *p, int64_t i)
{
    p->first = i / p->step * p->step * p->count + i % p->step;
}

static enum cm_status do_not_fit(const char *what, const struct cm_tensor *tensor,
                                 const struct cm_tensor *targets, struct cm_error *err)
{
    char a[200], b[200];

    return cm_fail(
        err, CM_BAD_ARGUMENT, "%s of shape %s and targets of shape %s do not fit together", what,
        cm_shape_print(&tensor->shape, a, sizeof a), cm_shape_print(&targets->shape, b, sizeof b));
}

static enum cm_status make_rankings(struct cm_metrics *m, size_t count, struct cm_error *err)
{
    if (!m->has_scores || !cm_metrics_wants(m, CM_MEASURE_AUC))
        return CM_OK;
    m->rankings = cm_calloc(count, sizeof *m->rankings);
    m->n_rankings = count;
    return m->rankings ? CM_OK : cm_metrics_no_memory(err);
}

static enum cm_status decide(struct cm_metrics *m, const struct batch *b, struct cm_error *err)
{
    struct cm_score_position p;

    m->has_scores = b->scores != NULL;
    if (b->scores && row_size(b->scores, b->rows) != b->per_row) {
        if (!find_position(m, b, &p))
            return do_not_fit("scores", b->scores, b->targets, err);
        m->task = CM_TASK_CLASSES;
        CM_TRY(cm_metrics_fix_classes(m, (size_t)p.count, err));
    } else if (b->labels) {
        m->task = CM_TASK_CLASSES;
    } else {
        m->task = cm_metrics_wants_classes(m) || b->targets->type == CM_BOOL ? CM_TASK_BINARY
                                                                             : CM_TASK_NUMBERS;
    }
    cm_metrics_wish_by_task(m);
    CM_TRY(cm_metrics_check_wishes(m, err));
    if (m->task == CM_TASK_BINARY) {
        CM_TRY(cm_metrics_add_class(m, 0, 0, err));
        CM_TRY(cm_metrics_add_class(m, 1, 0, err));
        m->classes_fixed = true;
    }
    if (m->task != CM_TASK_NUMBERS)
        return make_rankings(m, m->n_columns > 2 ? m->n_columns : 1, err);
    m->n_numbers = (size_t)b->per_row;
    m->columns = cm_calloc(m->n_numbers + 1, sizeof *m->columns);
    return m->columns ? CM_OK : cm_metrics_no_memory(err);
}

/* The first of those with the highest score. */
static int64_t best_of(const struct cm_score_position *p)
{
    int64_t best = 0;

    for (int64_t c = 1; c < p->count; c++)
        if (cm_score_at(p, c) > cm_score_at(p, best))
            best = c;
    return best;
}

/* Those that come before this one: higher, or as high and further left. */
static int64_t rank_of(const struct cm_score_position *p, int64_t column)
{
    const double score = cm_score_at(p, column);
    int64_t rank = 0;

    for (int64_t c = 0; c < p->count; c++)
        rank += cm_score_at(p, c) > score || (c < column && cm_score_at(p, c) == score);
    return rank;
}

static enum cm_status rank(struct cm_metrics *m, size_t which, double score, bool positive,
                           struct cm_error *err)
{
    const size_t share = KEPT_SCORES / m->n_rankings;

    return cm_ranking_add(&m->rankings[which], score, positive,
                          share > LEAST_SCORES ? share : LEAST_SCORES, err);
}

static enum cm_status judge_scores(struct cm_metrics *m, const struct cm_score_position *p,
                                   size_t actual, struct cm_error *err)
{
    const int64_t column = (int64_t)m->classes[actual].column;

    if (m->loss)
        CM_TRY(cm_metrics_lose_class(m, p, column, err));
    for (size_t i = 0; i < m->n_wishes; i++)
        if (m->wishes[i].measure == CM_MEASURE_TOP)
            m->wishes[i].hits += rank_of(p, column) < m->wishes[i].k;
    if (m->n_rankings == 1)
        return rank(m, 0, cm_score_at(p, p->count - 1), column == p->count - 1, err);
    for (size_t c = 0; c < m->n_rankings; c++)
        CM_TRY(rank(m, c, cm_score_at(p, (int64_t)c), column == (int64_t)c, err));
    return CM_OK;
}

static enum cm_status add_classes(struct cm_metrics *m, const struct batch *b, struct cm_error *err)
{
    const int64_t count = b->rows * b->per_row;
    struct cm_score_position p = {0};

    if (m->n_columns && (!find_position(m, b, &p) || (size_t)p.count != m->n_columns))
        return do_not_fit("scores", b->scores, b->targets, err);
    if (m->n_columns && m->loss && m->loss->contains == CM_CONTAINS_SOFTMAX && !m->knows_scores) {
        m->knows_scores = m->probabilities = true;
        for (int64_t i = 0; i < count && m->probabilities; i++) {
            go_to(&p, i);
            m->probabilities = cm_is_distribution(&p);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        const double target = cm_tensor_real(b->targets, i);
        const int64_t row = b->first_row + i / b->per_row;
        size_t actual, predicted;

        if (is_ignored(m, target))
            continue;
        CM_TRY(cm_metrics_class(m, target, row, "label", &actual, err));
        if (m->n_columns)
            go_to(&p, i);
        if (b->labels) {
            CM_TRY(cm_metrics_class(m, cm_tensor_real(b->labels, i), row, "predicted label",
                                    &predicted, err));
            actual = cm_metrics_place(m, (int64_t)target); /* the other one may have moved it */
        } else {
            const int64_t best = best_of(&p);

            predicted = cm_metrics_place(m, m->by_column ? m->by_column[best] : best);
        }
        cm_metrics_count(m, actual, predicted);
        if (m->n_columns)
            CM_TRY(judge_scores(m, &p, actual, err));
        if (!m->n_columns && m->has_scores && m->loss)
            CM_TRY(cm_metrics_lose_number(m, cm_tensor_real(b->scores, i), target, err));
        if (!m->n_columns && m->n_rankings)
            CM_TRY(rank(m, 0, cm_tensor_real(b->scores, i), target > 0, err));
    }
    return CM_OK;
}

static enum cm_status add_binary(struct cm_metrics *m, const struct batch *b, struct cm_error *err)
{
    const double threshold = m->loss && m->loss->is_binary ? m->loss->threshold : 0.5;

    for (int64_t i = 0; i < b->rows * b->per_row; i++) {
        const double target = cm_tensor_real(b->targets, i), score = cm_tensor_real(b->scores, i);

        if (is_ignored(m, target))
            continue;
        if (target != 0 && target != 1)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "row %lld (counted from 0) has the label %g, expected 0 or 1 for one "
                           "score",
                           (long long)(b->first_row + i / b->per_row), target);
        cm_metrics_count(m, target == 1, score > threshold);
        if (m->loss)
            CM_TRY(cm_metrics_lose_number(m, score, target, err));
        if (m->n_rankings)
            CM_TRY(rank(m, 0, score, target == 1, err));
    }
    return CM_OK;
}

static enum cm_status add_numbers(struct cm_metrics *m, const struct batch *b, struct cm_error *err)
{
    for (int64_t i = 0; i < b->rows * b->per_row; i++) {
        const double target = cm_tensor_real(b->targets, i), x = cm_tensor_real(b->scores, i);
        const double count = (double)(m->samples + i / b->per_row + 1);
        struct cm_error_column *c = &m->columns[i % b->per_row];
        const double before = target - c->mean;

        c->mean += before / count;
        c->spread += before * (target - c->mean);
        c->absolute += fabs(x - target);
        c->squared += (x - target) * (x - target);
    }
    return m->loss ? cm_metrics_lose_rows(m, b->scores, b->targets, b->rows, err) : CM_OK;
}

/* Of sequences, nothing but the loss is known. */
static enum cm_status add_sequences(struct cm_metrics *m, const struct batch *b,
                                    struct cm_error *err)
{
    for (size_t i = 0; i < m->n_wishes; i++)
        if (m->wishes[i].measure != CM_MEASURE_LOSS)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "metric '%s' is not computed of sequences, which loss '%s' compares",
                           cm_measure_names[m->wishes[i].measure], m->loss->name);
    if (!b->scores || b->scores->shape.rank != 3 || b->scores->shape.dims[0] < b->rows ||
        b->targets->shape.rank != 2)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "loss '%s' needs scores of rank 3 and targets of rank 2", m->loss->name);
    m->samples += b->rows;
    return cm_metrics_lose_rows(m, b->scores, b->targets, b->rows, err);
}

enum cm_status cm_metrics_add(struct cm_metrics *m, const struct cm_tensor *labels,
                              const struct cm_tensor *scores, const struct cm_tensor *targets,
                              int64_t rows, struct cm_error *err)
{
    const struct batch b = {labels, scores, targets, rows, row_size(targets, rows), m->samples};
    enum cm_status status = CM_OK;

    if ((labels && !is_real(labels)) || (scores && !is_real(scores)) || !is_real(targets))
        return cm_fail(err, CM_BAD_ARGUMENT, "predictions and targets must be real numbers");
    if (b.per_row < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "the targets have no rows");
    if (m->loss && m->loss->target == CM_TARGET_SEQUENCES)
        return add_sequences(m, &b, err);
    if (labels && row_size(labels, rows) != b.per_row)
        return do_not_fit("labels", labels, targets, err);
    if (scores && row_size(scores, rows) < 0)
        return do_not_fit("scores", scores, targets, err);
    if (!m->task)
        CM_TRY(decide(m, &b, err));
    if (m->has_scores != (scores != NULL) || (m->n_numbers && (int64_t)m->n_numbers != b.per_row) ||
        (scores && !m->n_columns && row_size(scores, rows) != b.per_row))
        return cm_fail(err, CM_BAD_ARGUMENT, "the shape of predictions changes on the way");
    if (m->task == CM_TASK_CLASSES)
        status = add_classes(m, &b, err);
    else if (m->task == CM_TASK_BINARY)
        status = add_binary(m, &b, err);
    else
        status = add_numbers(m, &b, err);
    m->samples += rows;
    return status ? status : cm_metrics_finish_loss(m, err);
}

enum cm_status cm_metrics_new(const struct cm_metrics_options *options, struct cm_metrics **out,
                              struct cm_error *err)
{
    struct cm_metrics *m = cm_calloc(1, sizeof *m);

    *out = NULL;
    if (!m)
        return cm_metrics_no_memory(err);
    m->class_axis = options->class_axis;
    m->ignored = options->ignored;
    enum cm_status status = cm_metrics_read_names(m, options->names, err);
    if (status == CM_OK)
        status = cm_metrics_read_loss(m, options->loss, err);
    if (status == CM_OK && options->names_of_classes)
        status = cm_metrics_set_classes(m, options->names_of_classes, options->n_classes, err);
    if (status)
        cm_metrics_free(m);
    else
        *out = m;
    return status;
}

void cm_metrics_free(struct cm_metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_rankings; i++)
        cm_ranking_release(&m->rankings[i]);
    cm_free(m->rankings);
    cm_free(m->classes);
    cm_free(m->by_column);
    cm_free(m->matrix);
    cm_free(m->columns);
    cm_free(m->gathered.x);
    cm_free(m->gathered.y);
    cm_free(m->gathered.classes);
    cm_free(m);
}
