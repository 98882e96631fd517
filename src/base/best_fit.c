/* A list of gaps, searched from one end to the other: blocks have few. */
// SPDX-License-Identifier: Apache-2.0
#include "base/best_fit.h"

#include <string.h>

static void insert_gap(struct cm_gaps *gaps, size_t at, struct cm_gap gap)
{
    memmove(&gaps->items[at + 1], &gaps->items[at], (gaps->count++ - at) * sizeof gap);
    gaps->items[at] = gap;
}

static void remove_gap(struct cm_gaps *gaps, size_t at)
{
    memmove(&gaps->items[at], &gaps->items[at + 1], (--gaps->count - at) * sizeof *gaps->items);
}

size_t cm_gaps_take(struct cm_gaps *gaps, size_t size)
{
    size_t best = gaps->count;
    for (size_t i = 0; i < gaps->count; i++) {
        const size_t has = gaps->items[i].size;
        if (has >= size && (best == gaps->count || has < gaps->items[best].size))
            best = i;
    }
    if (best < gaps->count) {
        struct cm_gap *gap = &gaps->items[best];
        const size_t offset = gap->offset;
        gap->offset += size;
        gap->size -= size;
        if (gap->size == 0)
            remove_gap(gaps, best);
        return offset;
    }
    /* A gap at the very end grows. */
    const struct cm_gap *last = gaps->count ? &gaps->items[gaps->count - 1] : NULL;
    size_t offset = gaps->end;
    if (last && last->offset + last->size == gaps->end) {
        offset = last->offset;
        gaps->count--;
    }
    gaps->end = offset + size;
    return offset;
}

void cm_gaps_give_back(struct cm_gaps *gaps, size_t offset, size_t size)
{
    size_t at = gaps->count; /* searched from the end: what was taken last goes first */
    while (at > 0 && gaps->items[at - 1].offset > offset)
        at--;
    insert_gap(gaps, at, (struct cm_gap){offset, size});
    struct cm_gap *gap = &gaps->items[at];
    if (at + 1 < gaps->count && offset + size == gap[1].offset) {
        gap->size += gap[1].size;
        remove_gap(gaps, at + 1);
    }
    if (at > 0 && gap[-1].offset + gap[-1].size == offset) {
        gap[-1].size += gap->size;
        remove_gap(gaps, at);
    }
}
