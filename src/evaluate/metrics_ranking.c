/* The area under the ROC curve, of scores that come one by one. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "evaluate/metrics.h"

#include <math.h>
#include <stdlib.h>

/* Scores from the one before, exclusive, up to this one. */
struct cm_ranked {
    double score;
    uint64_t positives, negatives;
};

static int by_score(const void *a, const void *b)
{
    const double x = ((const struct cm_ranked *)a)->score, y = ((const struct cm_ranked *)b)->score;

    return (x > y) - (x < y);
}

/* Equal scores become one item, which loses nothing. */
static void sort(struct cm_ranking *r)
{
    size_t kept = 0;

    if (r->binned || !r->count)
        return;
    qsort(r->items, r->count, sizeof *r->items, by_score);
    for (size_t i = 1; i < r->count; i++) {
        if (r->items[i].score != r->items[kept].score) {
            r->items[++kept] = r->items[i];
        } else {
            r->items[kept].positives += r->items[i].positives;
            r->items[kept].negatives += r->items[i].negatives;
        }
    }
    r->count = kept + 1;
}

/* Neighbours are joined until half of the room is free; the last bin takes all that is higher. */
static void make_bins(struct cm_ranking *r)
{
    size_t kept = 0;

    sort(r);
    if (r->count <= r->most / 2)
        return;
    uint64_t total = 0, in_bin = 0;
    for (size_t i = 0; i < r->count; i++)
        total += r->items[i].positives + r->items[i].negatives;
    const uint64_t size = total / (r->most / 2) + 1;
    for (size_t i = 0; i < r->count; i++) {
        const struct cm_ranked item = r->items[i];

        if (in_bin == 0)
            r->items[kept] = (struct cm_ranked){0};
        r->items[kept].score = item.score;
        r->items[kept].positives += item.positives;
        r->items[kept].negatives += item.negatives;
        in_bin += item.positives + item.negatives;
        if (in_bin >= size || i + 1 == r->count) {
            kept++;
            in_bin = 0;
        }
    }
    r->count = kept;
    r->items[kept - 1].score = (double)INFINITY;
    r->binned = true;
}

static struct cm_ranked *bin_of(const struct cm_ranking *r, double score)
{
    size_t low = 0, high = r->count - 1;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (score <= r->items[middle].score)
            high = middle;
        else
            low = middle + 1;
    }
    return &r->items[low];
}

enum cm_status cm_ranking_add(struct cm_ranking *r, double score, bool positive, size_t most,
                              struct cm_error *err)
{
    r->most = most;
    if (!r->binned && r->count == most)
        make_bins(r);
    if (!r->binned) {
        if (r->count == r->capacity) {
            const size_t wanted = r->capacity ? 2 * r->capacity : 256;
            const size_t capacity = wanted < most ? wanted : most;
            struct cm_ranked *items = cm_realloc(r->items, capacity * sizeof *items);

            if (!items)
                return cm_fail(err, CM_NO_MEMORY, "no memory for the scores of metric 'auc'");
            r->items = items;
            r->capacity = capacity;
        }
        r->items[r->count++] = (struct cm_ranked){score, 0, 0};
    }
    struct cm_ranked *item = r->binned ? bin_of(r, score) : &r->items[r->count - 1];
    if (positive)
        item->positives++;
    else
        item->negatives++;
    return CM_OK;
}

void cm_ranking_release(struct cm_ranking *r)
{
    cm_free(r->items);
    *r = (struct cm_ranking){0};
}

/* Of all pairs of a positive and a negative, the part where the positive has the higher score;
 * equal ones count half. */
double cm_ranking_area(struct cm_ranking *r, double *bound, double *positives)
{
    double below = 0, pairs = 0, unsure = 0, total = 0;

    sort(r);
    for (size_t i = 0; i < r->count; i++) {
        const double p = (double)r->items[i].positives, n = (double)r->items[i].negatives;

        pairs += p * (below + n / 2);
        unsure += p * n / 2;
        below += n;
        total += p;
    }
    if (positives)
        *positives = total;
    *bound = 0;
    if (total == 0 || below == 0)
        return (double)NAN;
    *bound = r->binned ? unsure / (total * below) : 0;
    return pairs / (total * below);
}
