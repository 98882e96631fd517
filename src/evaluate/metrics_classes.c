/* The classes of a classifier and how often each is hit. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "evaluate/metrics_parts.h"

#include <math.h>

enum { CONFUSION_MAX = 2000, CLASSES_MAX = 1 << 16 };

enum cm_status cm_metrics_no_memory(struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "no memory for metrics");
}

static enum cm_status grow_classes(struct cm_metrics *m, struct cm_error *err)
{
    const size_t room = m->room ? 2 * m->room : 16;
    struct cm_known_class *classes = cm_realloc(m->classes, room * sizeof *classes);

    if (!classes)
        return cm_metrics_no_memory(err);
    m->classes = classes;
    if (cm_metrics_wants(m, CM_MEASURE_CONFUSION)) {
        uint64_t *matrix =
            room <= 2 * CONFUSION_MAX ? cm_calloc(room * room, sizeof *matrix) : NULL;

        if (!matrix)
            return room <= 2 * CONFUSION_MAX
                       ? cm_metrics_no_memory(err)
                       : cm_fail(err, CM_LIMIT, "metric 'confusion' is for at most %d classes",
                                 CONFUSION_MAX);
        for (size_t i = 0; i < m->room; i++)
            memcpy(matrix + i * room, m->matrix + i * m->room, m->room * sizeof *matrix);
        cm_free(m->matrix);
        m->matrix = matrix;
    }
    m->room = room;
    return CM_OK;
}

/* Where the label is, or would be. */
size_t cm_metrics_place(const struct cm_metrics *m, int64_t label)
{
    size_t low = 0, high = m->n_classes;

    if (label >= 0 && (uint64_t)label < high && m->classes[label].count.label == label)
        return (size_t)label;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (m->classes[middle].count.label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool cm_metrics_knows(const struct cm_metrics *m, size_t place, int64_t label)
{
    return place < m->n_classes && m->classes[place].count.label == label;
}

enum cm_status cm_metrics_add_class(struct cm_metrics *m, int64_t label, size_t column,
                                    struct cm_error *err)
{
    const size_t place = cm_metrics_place(m, label);

    if (cm_metrics_knows(m, place, label))
        return CM_OK;
    if (m->n_classes == CLASSES_MAX)
        return cm_fail(err, CM_LIMIT, "more than %d different labels", CLASSES_MAX);
    if (m->n_classes == m->room)
        CM_TRY(grow_classes(m, err));
    memmove(m->classes + place + 1, m->classes + place,
            (m->n_classes - place) * sizeof *m->classes);
    m->classes[place] =
        (struct cm_known_class){.count = {.label = label}, .id = m->n_classes, .column = column};
    m->n_classes++;
    return CM_OK;
}

enum cm_status cm_metrics_set_classes(struct cm_metrics *m, const int64_t *classes, size_t count,
                                      struct cm_error *err)
{
    if (m->by_column) {
        if (count != m->n_columns || memcmp(classes, m->by_column, count * sizeof *classes) != 0)
            return cm_fail(err, CM_BAD_ARGUMENT, "the classes of the scores change on the way");
        return CM_OK;
    }
    if (m->task)
        return cm_fail(err, CM_BAD_ARGUMENT, "classes are named after the first batch");
    if (count < 1 || count > CLASSES_MAX)
        return cm_fail(err, CM_LIMIT, "%zu classes: expected 1 to %d", count, CLASSES_MAX);
    m->by_column = cm_malloc(count * sizeof *m->by_column);
    if (!m->by_column)
        return cm_metrics_no_memory(err);
    memcpy(m->by_column, classes, count * sizeof *classes);
    m->n_columns = count;
    return CM_OK;
}

enum cm_status cm_metrics_fix_classes(struct cm_metrics *m, size_t columns, struct cm_error *err)
{
    if (m->by_column && m->n_columns != columns)
        return cm_fail(err, CM_BAD_ARGUMENT, "%zu classes are named, but there are scores of %zu",
                       m->n_columns, columns);
    if (columns > CLASSES_MAX)
        return cm_fail(err, CM_LIMIT, "%zu classes: at most %d can be judged", columns,
                       CLASSES_MAX);
    m->n_columns = columns;
    for (size_t c = 0; c < columns; c++) {
        CM_TRY(cm_metrics_add_class(m, m->by_column ? m->by_column[c] : (int64_t)c, c, err));
        if (m->n_classes != c + 1)
            return cm_fail(err, CM_BAD_ARGUMENT, "class %lld is named twice",
                           (long long)m->by_column[c]);
    }
    m->classes_fixed = true;
    return CM_OK;
}

/* A label that came as any kind of number, and where its class is. SIZE_MAX: it does not count. */
enum cm_status cm_metrics_class(struct cm_metrics *m, double number, int64_t row, const char *what,
                                size_t *out, struct cm_error *err)
{
    if (!(number >= -9e15 && number <= 9e15) || number != floor(number))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "row %lld (counted from 0) has the %s %g, expected a whole number",
                       (long long)row, what, number);
    const int64_t label = (int64_t)number;
    *out = cm_metrics_place(m, label);
    if (cm_metrics_knows(m, *out, label))
        return CM_OK;
    if (!m->classes_fixed)
        return cm_metrics_add_class(m, label, 0, err);
    if (m->by_column)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "row %lld (counted from 0) has the %s %lld, which is not among the %zu "
                       "classes of the scores",
                       (long long)row, what, (long long)label, m->n_classes);
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "row %lld (counted from 0) has the %s %lld, but the classes of the scores are 0 "
                   "to %zu; name the classes, or the label to ignore",
                   (long long)row, what, (long long)label, m->n_classes - 1);
}

void cm_metrics_count(struct cm_metrics *m, size_t actual, size_t predicted)
{
    struct cm_known_class *a = &m->classes[actual], *p = &m->classes[predicted];

    a->count.actual++;
    p->count.predicted++;
    a->count.correct += actual == predicted;
    m->judged++;
    if (m->matrix)
        m->matrix[a->id * m->room + p->id]++;
}
