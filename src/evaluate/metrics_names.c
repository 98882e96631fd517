/* Metrics and losses by their names, and which fit what. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metrics_parts.h"

#include "training_names.h"

const char *const cm_average_names[] = {"", "macro", "micro", "weighted"};

const char *const cm_measure_names[] = {[CM_MEASURE_LOSS] = "loss",
                                        [CM_MEASURE_ACCURACY] = "accuracy",
                                        [CM_MEASURE_TOP] = "top-",
                                        [CM_MEASURE_CONFUSION] = "confusion",
                                        [CM_MEASURE_PRECISION] = "precision",
                                        [CM_MEASURE_RECALL] = "recall",
                                        [CM_MEASURE_F1] = "f1",
                                        [CM_MEASURE_AUC] = "auc",
                                        [CM_MEASURE_MAE] = "mae",
                                        [CM_MEASURE_MSE] = "mse",
                                        [CM_MEASURE_RMSE] = "rmse",
                                        [CM_MEASURE_R2] = "r2"};

enum { OF_CLASSES = 1, OF_NUMBERS = 2, OF_ALL = 3 };

/* Averages are a set of bits. */
static const struct {
    int of;
    unsigned averages;
} measures[] = {
    [CM_MEASURE_LOSS] = {OF_ALL, 0},
    [CM_MEASURE_ACCURACY] = {OF_CLASSES, 0},
    [CM_MEASURE_TOP] = {OF_CLASSES, 0},
    [CM_MEASURE_CONFUSION] = {OF_CLASSES, 0},
    [CM_MEASURE_PRECISION] = {OF_CLASSES, 1 << CM_AVERAGE_MACRO | 1 << CM_AVERAGE_MICRO |
                                              1 << CM_AVERAGE_WEIGHTED},
    [CM_MEASURE_RECALL] = {OF_CLASSES, 1 << CM_AVERAGE_MACRO | 1 << CM_AVERAGE_MICRO |
                                           1 << CM_AVERAGE_WEIGHTED},
    [CM_MEASURE_F1] = {OF_CLASSES,
                       1 << CM_AVERAGE_MACRO | 1 << CM_AVERAGE_MICRO | 1 << CM_AVERAGE_WEIGHTED},
    [CM_MEASURE_AUC] = {OF_CLASSES, 1 << CM_AVERAGE_MACRO | 1 << CM_AVERAGE_WEIGHTED},
    [CM_MEASURE_MAE] = {OF_NUMBERS, 0},
    [CM_MEASURE_MSE] = {OF_NUMBERS, 0},
    [CM_MEASURE_RMSE] = {OF_NUMBERS, 0},
    [CM_MEASURE_R2] = {OF_NUMBERS, 0},
};

enum { MEASURES = sizeof measures / sizeof *measures };

static bool find_measure(struct cm_str name, struct cm_metric_wish *out)
{
    for (int m = 0; m < MEASURES; m++) {
        const size_t size = strlen(cm_measure_names[m]);
        const struct cm_str rest = {name.data + size, name.size - size};

        if (name.size < size || memcmp(name.data, cm_measure_names[m], size) != 0)
            continue;
        *out = (struct cm_metric_wish){.measure = (enum cm_measure)m};
        if (m == CM_MEASURE_TOP)
            return cm_str_to_int64(rest, &out->k) && out->k > 0;
        if (!rest.size)
            return true;
        for (int a = CM_AVERAGE_MACRO; a <= CM_AVERAGE_WEIGHTED; a++)
            if ((measures[m].averages >> a & 1) && rest.data[0] == '-' &&
                cm_str_is((struct cm_str){rest.data + 1, rest.size - 1}, cm_average_names[a])) {
                out->average = (enum cm_average)a;
                return true;
            }
    }
    return false;
}

enum cm_status cm_metrics_read_names(struct cm_metrics *m, const char *names, struct cm_error *err)
{
    char unknown[200] = "";
    size_t used = 0;

    m->named = names && *names;
    while (names && *names) {
        const struct cm_str name = {names, strcspn(names, ",")};
        struct cm_metric_wish wish;

        if (m->n_wishes == CM_WISHES_MAX)
            return cm_fail(err, CM_BAD_ARGUMENT, "more than %d metrics are named", CM_WISHES_MAX);
        if (find_measure(name, &wish))
            m->wishes[m->n_wishes++] = wish;
        else if (used + name.size + 8 < sizeof unknown)
            used += (size_t)snprintf(unknown + used, sizeof unknown - used, "%s'%.*s'",
                                     used ? ", " : "", CM_STR_FMT(name));
        names += name.size + (names[name.size] == ',');
    }
    if (!used)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "unknown metric %s, expected loss, accuracy, top-5, confusion, precision, "
                   "recall, f1 (or f1-macro, f1-micro, f1-weighted), auc, mae, mse, rmse, r2",
                   unknown);
}

enum cm_status cm_metrics_read_loss(struct cm_metrics *m, const char *name, struct cm_error *err)
{
    m->loss = cm_loss_rule_find(name);
    if (name && !m->loss)
        return cm_fail(err, CM_BAD_ARGUMENT, "unknown loss '%s', expected " CAMEO_LOSS_NAMES, name);
    return CM_OK;
}

bool cm_metrics_wants(const struct cm_metrics *m, enum cm_measure measure)
{
    for (size_t i = 0; i < m->n_wishes; i++)
        if (m->wishes[i].measure == measure)
            return true;
    return false;
}

bool cm_metrics_wants_classes(const struct cm_metrics *m)
{
    for (size_t i = 0; i < m->n_wishes; i++)
        if (measures[m->wishes[i].measure].of == OF_CLASSES)
            return true;
    return m->loss && m->loss->is_binary;
}

static void wish_for(struct cm_metrics *m, enum cm_measure measure, int64_t k)
{
    m->wishes[m->n_wishes++] = (struct cm_metric_wish){.measure = measure, .k = k};
}

void cm_metrics_wish_by_task(struct cm_metrics *m)
{
    if (m->named)
        return;
    if (m->loss)
        wish_for(m, CM_MEASURE_LOSS, 0);
    if (m->task == CM_TASK_NUMBERS) {
        wish_for(m, CM_MEASURE_MAE, 0);
        wish_for(m, CM_MEASURE_RMSE, 0);
        wish_for(m, CM_MEASURE_R2, 0);
        return;
    }
    wish_for(m, CM_MEASURE_ACCURACY, 0);
    if (m->n_columns > 5)
        wish_for(m, CM_MEASURE_TOP, 5);
    wish_for(m, CM_MEASURE_PRECISION, 0);
    wish_for(m, CM_MEASURE_RECALL, 0);
    wish_for(m, CM_MEASURE_F1, 0);
    if (m->has_scores)
        wish_for(m, CM_MEASURE_AUC, 0);
}

enum cm_status cm_metrics_check_wishes(const struct cm_metrics *m, struct cm_error *err)
{
    for (size_t i = 0; i < m->n_wishes; i++) {
        const enum cm_measure measure = m->wishes[i].measure;

        if (!(measures[measure].of & (m->task == CM_TASK_NUMBERS ? OF_NUMBERS : OF_CLASSES)))
            return cm_fail(err, CM_BAD_ARGUMENT, "metric '%s' is for %s, but the model predicts %s",
                           cm_measure_names[measure],
                           m->task == CM_TASK_NUMBERS ? "classes" : "numbers",
                           m->task == CM_TASK_NUMBERS ? "numbers" : "classes");
        if ((measure == CM_MEASURE_AUC && !m->has_scores) ||
            (measure == CM_MEASURE_TOP && !m->n_columns))
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "metric '%s%.0lld' needs a score for each class, not labels alone",
                           cm_measure_names[measure], (long long)m->wishes[i].k);
    }
    const bool by_class = m->loss && m->loss->target == CM_TARGET_CLASSES;
    if (m->loss && (by_class ? !m->n_columns : m->n_columns || !m->has_scores))
        return cm_fail(err, CM_BAD_ARGUMENT, "loss '%s' needs %s", m->loss->name,
                       by_class ? "a score for each class" : "one number for each target");
    return CM_OK;
}
