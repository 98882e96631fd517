/* What metrics have come to. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metrics_parts.h"

#include <math.h>

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double of_class(enum cm_measure measure, const struct cm_class_count *c)
{
    const double hits = (double)c->correct, actual = (double)c->actual;
    const double predicted = (double)c->predicted;

    return measure == CM_MEASURE_PRECISION ? ratio(hits, predicted)
           : measure == CM_MEASURE_RECALL  ? ratio(hits, actual)
                                           : ratio(2 * hits, actual + predicted);
}

/* The class that precision, recall and F1 are about when there are two: 1. SIZE_MAX: none. */
static size_t positive_class(const struct cm_metrics *m)
{
    const size_t place = cm_metrics_place(m, 1);

    return m->n_classes <= 2 && cm_metrics_knows(m, place, 1) ? place : SIZE_MAX;
}

static void average_classes(const struct cm_metrics *m, const struct cm_metric_wish *wish,
                            struct cm_metric *out)
{
    const size_t positive = positive_class(m);
    double sum = 0, weight = 0;

    if (wish->average == CM_AVERAGE_BY_TASK && positive != SIZE_MAX) {
        out->average = "class 1";
        out->value = of_class(wish->measure, &m->classes[positive].count);
        return;
    }
    out->average =
        cm_average_names[wish->average == CM_AVERAGE_BY_TASK ? CM_AVERAGE_MACRO : wish->average];
    for (size_t i = 0; i < m->n_classes; i++) {
        const struct cm_class_count *c = &m->classes[i].count;
        const double part = wish->average == CM_AVERAGE_WEIGHTED ? (double)c->actual : 1;

        if (c->actual + c->predicted == 0)
            continue;
        sum += part * of_class(wish->measure, c);
        weight += part;
    }
    out->value = weight > 0 ? sum / weight : (double)NAN;
    if (wish->average ==
        CM_AVERAGE_MICRO) { /* each error is a false positive and a false negative */
        double correct = 0;

        for (size_t i = 0; i < m->n_classes; i++)
            correct += (double)m->classes[i].count.correct;
        out->value = m->judged ? correct / (double)m->judged : (double)NAN;
    }
}

static void average_areas(const struct cm_metrics *m, const struct cm_metric_wish *wish,
                          struct cm_metric *out)
{
    double sum = 0, weight = 0, unsure = 0;

    for (size_t i = 0; i < m->n_rankings; i++) {
        double bound, positives;
        const double area = cm_ranking_area(&m->rankings[i], &bound, &positives);
        const double part = wish->average == CM_AVERAGE_WEIGHTED ? positives : 1;

        if (isnan(area))
            continue;
        sum += part * area;
        unsure += part * bound;
        weight += part;
    }
    if (m->n_rankings > 1)
        out->average = cm_average_names[wish->average == CM_AVERAGE_BY_TASK ? CM_AVERAGE_MACRO
                                                                            : wish->average];
    out->value = weight > 0 ? sum / weight : (double)NAN;
    out->bound = weight > 0 ? unsure / weight : 0;
}

static double of_numbers(const struct cm_metrics *m, enum cm_measure measure)
{
    const double rows = (double)m->samples;
    double sum = 0;

    for (size_t i = 0; i < m->n_numbers; i++) {
        const struct cm_error_column *c = &m->columns[i];

        switch (measure) {
        case CM_MEASURE_MAE:
            sum += c->absolute / rows;
            break;
        case CM_MEASURE_MSE:
            sum += c->squared / rows;
            break;
        case CM_MEASURE_RMSE:
            sum += sqrt(c->squared / rows);
            break;
        default: /* targets that are all the same leave nothing to explain */
            sum += c->spread > 0 ? 1 - c->squared / c->spread : c->squared == 0;
        }
    }
    return rows < (measure == CM_MEASURE_R2 ? 2 : 1) ? (double)NAN : sum / (double)m->n_numbers;
}

static void compute(const struct cm_metrics *m, const struct cm_metric_wish *wish,
                    struct cm_metric *out)
{
    uint64_t correct = 0;

    *out = (struct cm_metric){.average = "", .value = (double)NAN};
    snprintf(out->name, sizeof out->name, "%s", cm_measure_names[wish->measure]);
    switch (wish->measure) {
    case CM_MEASURE_LOSS:
        if (m->loss_weight > 0)
            out->value = m->loss_sum / m->loss_weight;
        break;
    case CM_MEASURE_TOP:
        snprintf(out->name, sizeof out->name, "top-%lld", (long long)wish->k);
        if (m->judged)
            out->value = (double)wish->hits / (double)m->judged;
        break;
    case CM_MEASURE_ACCURACY:
    case CM_MEASURE_CONFUSION:
        for (size_t i = 0; i < m->n_classes; i++)
            correct += m->classes[i].count.correct;
        if (m->judged)
            out->value = (double)correct / (double)m->judged;
        break;
    case CM_MEASURE_PRECISION:
    case CM_MEASURE_RECALL:
    case CM_MEASURE_F1:
        average_classes(m, wish, out);
        break;
    case CM_MEASURE_AUC:
        average_areas(m, wish, out);
        break;
    default:
        out->value = of_numbers(m, wish->measure);
    }
}

static void list_classes(const struct cm_metrics *m, struct cm_arena *arena,
                         struct cm_metrics_result *out)
{
    const size_t n = m->n_classes;
    size_t *ids = CM_NEW_ARRAY(arena, size_t, n + 1);

    out->classes = CM_NEW_ARRAY(arena, struct cm_class_count, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (m->classes[i].count.actual + m->classes[i].count.predicted == 0)
            continue;
        ids[out->n_classes] = m->classes[i].id;
        out->classes[out->n_classes++] = m->classes[i].count;
    }
    if (!m->matrix)
        return;
    out->confusion = CM_NEW_ARRAY(arena, uint64_t, out->n_classes * out->n_classes + 1);
    for (size_t i = 0; i < out->n_classes; i++)
        for (size_t k = 0; k < out->n_classes; k++)
            out->confusion[i * out->n_classes + k] = m->matrix[ids[i] * m->room + ids[k]];
}

enum cm_status cm_metrics_result(const struct cm_metrics *m, struct cm_arena *arena,
                                 struct cm_metrics_result *out, struct cm_error *err)
{
    *out = (struct cm_metrics_result){.samples = m->samples, .probabilities = m->probabilities};
    const struct cm_metric_wish loss = {.measure = CM_MEASURE_LOSS};
    const bool has_loss = m->loss_weight > 0, lists_loss = cm_metrics_wants(m, CM_MEASURE_LOSS);

    if (lists_loss && !has_loss && m->samples && !m->loss)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "metric 'loss': no loss is named, and the model brings none");
    out->items = CM_NEW_ARRAY(arena, struct cm_metric, m->n_wishes + 1);
    if (has_loss && !lists_loss && !m->named)
        compute(m, &loss, &out->items[out->count++]);
    for (size_t i = 0; i < m->n_wishes; i++)
        if (m->wishes[i].measure != CM_MEASURE_CONFUSION)
            compute(m, &m->wishes[i], &out->items[out->count++]);
    list_classes(m, arena, out);
    return CM_OK;
}
