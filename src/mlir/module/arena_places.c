/* Best fit, the largest buffer first: each goes into the smallest gap between those that live at
 * the same time and have a place already. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/arena_places.h"

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

static int64_t end_of(const struct cm_mlir_place *place)
{
    const int64_t bytes = place->bytes > 0 ? place->bytes : 1;

    return place->offset + (bytes + CM_MLIR_ALIGNMENT - 1) / CM_MLIR_ALIGNMENT * CM_MLIR_ALIGNMENT;
}

static bool live_together(const struct cm_mlir_place *a, const struct cm_mlir_place *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* `placed` is ordered by offset, so gaps are seen from below. */
static int64_t smallest_gap(const struct cm_mlir_place *wanted, struct cm_mlir_place *const *placed,
                            size_t count)
{
    int64_t top = 0, best = -1, best_size = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        if (!live_together(wanted, placed[i]))
            continue;
        const int64_t gap = placed[i]->offset - top;
        if (gap >= wanted->bytes && gap > 0 && gap < best_size) {
            best = top;
            best_size = gap;
        }
        if (end_of(placed[i]) > top)
            top = end_of(placed[i]);
    }
    return best >= 0 ? best : top;
}

static void insert_placed(struct cm_mlir_place **placed, size_t count, struct cm_mlir_place *place)
{
    size_t at = count;

    for (; at > 0 && placed[at - 1]->offset > place->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = place;
}

bool cm_mlir_place_all(struct cm_mlir_place *places, size_t count, int64_t most, int64_t *total)
{
    struct cm_mlir_place **order = calloc(count + 1, sizeof *order);
    struct cm_mlir_place **placed = calloc(count + 1, sizeof *placed);
    bool fits = order && placed;

    *total = 0;
    for (size_t i = 0; fits && i < count; i++)
        order[i] = &places[i];
    if (fits)
        qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; fits && i < count; i++) {
        order[i]->offset = smallest_gap(order[i], placed, i);
        fits = order[i]->bytes <= most && order[i]->offset <= most - order[i]->bytes - 64;
        if (!fits)
            break;
        insert_placed(placed, i, order[i]);
        if (end_of(order[i]) > *total)
            *total = end_of(order[i]);
    }
    free(order);
    free(placed);
    return fits;
}
