/* Shape arithmetic on numbers and symbols. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/quantity.h"

struct cm_symbols *cm_quantity_symbols(const struct cm_infer *in, enum cm_dtype dtype)
{
    return dtype == CM_INT64 ? in->symbols : NULL;
}

static struct cm_quantity item_of(const struct cm_known *known, size_t i)
{
    return known->items[known->count == 1 ? 0 : i];
}

static bool is_some(const struct cm_quantity *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cm_quantity_is_some(items[i]))
            return true;
    return false;
}

void cm_infer_quantities(struct cm_infer *in, cm_quantity_pair_fn *join)
{
    struct cm_known joined, next;
    const enum cm_dtype dtype = cm_infer_type(in, 0)->dtype;
    if ((dtype != CM_INT64 && dtype != CM_INT32) || !cm_infer_known(in, 0, &joined))
        return;
    for (int i = 1; i < in->n_in; i++) {
        if (!cm_infer_known(in, i, &next) ||
            (joined.count != next.count && joined.count != 1 && next.count != 1))
            return;
        const size_t count = joined.count == 1 ? next.count : joined.count;
        struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, count);
        for (size_t k = 0; k < count; k++)
            items[k] = join(cm_quantity_symbols(in, dtype), item_of(&joined, k), item_of(&next, k));
        joined = (struct cm_known){joined.rank > next.rank ? joined.rank : next.rank, count, items};
    }
    if (is_some(joined.items, joined.count))
        cm_infer_set_known(in, 0, joined.rank, joined.count, joined.items);
}
