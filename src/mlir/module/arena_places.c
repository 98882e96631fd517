/* Best fit, the largest buffer first: each goes into the smallest gap between the buffers that live
 * at the same time and have a place already. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/arena_places.h"

#include "base/best_fit.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const struct cm_mlir_place *x = *(struct cm_mlir_place *const *)a;
    const struct cm_mlir_place *y = *(struct cm_mlir_place *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* they lie in one array: the same order every time */
}

/* Whole lines of memory, at least one. */
static size_t room_of(const struct cm_mlir_place *place)
{
    const size_t bytes = place->bytes > 0 ? (size_t)place->bytes : 1;

    return (bytes + CM_MLIR_ALIGNMENT - 1) / CM_MLIR_ALIGNMENT * CM_MLIR_ALIGNMENT;
}

static int64_t end_of(const struct cm_mlir_place *place)
{
    return place->offset + (int64_t)room_of(place);
}

static bool live_together(const struct cm_mlir_place *a, const struct cm_mlir_place *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The gaps between those of `placed`, which is sorted by offset, that live when `wanted` does. */
static void find_gaps(const struct cm_mlir_place *wanted, struct cm_mlir_place *const *placed,
                      size_t count, struct cm_gaps *gaps)
{
    gaps->count = gaps->end = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t offset = (size_t)placed[i]->offset, end = (size_t)end_of(placed[i]);

        if (!live_together(wanted, placed[i]))
            continue;
        if (offset > gaps->end)
            gaps->items[gaps->count++] = (struct cm_gap){gaps->end, offset - gaps->end};
        if (end > gaps->end)
            gaps->end = end;
    }
}

/* Sorts the last of `placed` in. */
static void insert_placed(struct cm_mlir_place **placed, size_t count)
{
    struct cm_mlir_place *const place = placed[count];
    size_t at = count;

    for (; at > 0 && placed[at - 1]->offset > place->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = place;
}

bool cm_mlir_place_all(struct cm_mlir_place *places, size_t count, int64_t most, int64_t *total)
{
    struct cm_mlir_place **order = calloc(count + 1, sizeof *order);
    struct cm_gaps gaps = {.items = calloc(count + 1, sizeof *gaps.items)};
    bool fits = order && gaps.items;

    *total = 0;
    for (size_t i = 0; fits && i < count; i++)
        order[i] = &places[i];
    if (fits)
        qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; fits && i < count; i++) { /* those before it have places, lowest first */
        struct cm_mlir_place *const place = order[i];

        fits = place->bytes <= most;
        if (!fits)
            break;
        find_gaps(place, order, i, &gaps);
        place->offset = (int64_t)cm_gaps_take(&gaps, room_of(place));
        fits = place->offset <= most - place->bytes - CM_MLIR_ALIGNMENT;
        insert_placed(order, i);
        if (fits && end_of(place) > *total)
            *total = end_of(place);
    }
    free(order);
    free(gaps.items);
    return fits;
}
