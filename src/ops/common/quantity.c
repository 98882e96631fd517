/* Shape arithmetic on numbers and symbols. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/quantity.h"

#include "base/number.h"
#include "graph/dim_product.h"

static bool is_number(struct cm_quantity quantity, int64_t number)
{
    return quantity.is_number && quantity.number == number;
}

static bool is_same(struct cm_quantity a, struct cm_quantity b)
{
    return a.is_number == b.is_number &&
           (a.is_number ? a.number == b.number : a.symbol && a.symbol == b.symbol);
}

static bool take(struct cm_quantity quantity, struct cm_quantity *out)
{
    *out = quantity;
    return true;
}

static bool take_number(int64_t number, struct cm_quantity *out)
{
    *out = (struct cm_quantity){number, 0, true};
    return true;
}

bool cm_quantity_add(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    int64_t sum;
    (void)symbols;
    if (is_number(a, 0))
        return take(b, out);
    if (is_number(b, 0))
        return take(a, out);
    return a.is_number && b.is_number && cm_int64_add(a.number, b.number, &sum) &&
           take_number(sum, out);
}

bool cm_quantity_sub(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    int64_t difference;
    (void)symbols;
    if (is_number(b, 0))
        return take(a, out);
    return a.is_number && b.is_number && cm_int64_sub(a.number, b.number, &difference) &&
           take_number(difference, out);
}

/* Times a size: one of them is a symbol, the other no negative number. */
static bool size_product(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                         struct cm_quantity *out)
{
    struct cm_product product = CM_PRODUCT_ONE;
    if (!symbols || (a.is_number && a.number < 0) || (b.is_number && b.number < 0))
        return false;
    cm_product_times(&product, symbols, cm_quantity_dim(a));
    cm_product_times(&product, symbols, cm_quantity_dim(b));
    *out = cm_dim_quantity(cm_product_dim(symbols, &product));
    return out->is_number || out->symbol;
}

bool cm_quantity_mul(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    int64_t product;
    if (is_number(a, 1))
        return take(b, out);
    if (is_number(b, 1))
        return take(a, out);
    if (!a.is_number || !b.is_number)
        return size_product(symbols, a, b, out);
    return cm_int64_mul(a.number, b.number, &product) && take_number(product, out);
}

/* A product of sizes by a number that it is a multiple of. */
static bool size_quotient(struct cm_symbols *symbols, struct cm_quantity a, int64_t divisor,
                          struct cm_quantity *out)
{
    struct cm_product product = CM_PRODUCT_ONE;
    cm_product_times(&product, symbols, cm_quantity_dim(a));
    if (!product.known || divisor <= 0 || product.number % divisor)
        return false;
    product.number /= divisor;
    *out = cm_dim_quantity(cm_product_dim(symbols, &product));
    return out->is_number || out->symbol;
}

bool cm_quantity_div(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    if (is_number(b, 1))
        return take(a, out);
    if (!b.is_number || b.number == 0 || b.number == -1)
        return false;
    if (!a.is_number)
        return symbols && a.symbol && size_quotient(symbols, a, b.number, out);
    return take_number(a.number / b.number, out);
}

bool cm_quantity_max(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    (void)symbols;
    if (is_same(a, b))
        return take(a, out);
    return a.is_number && b.is_number &&
           take_number(a.number > b.number ? a.number : b.number, out);
}

bool cm_quantity_min(struct cm_symbols *symbols, struct cm_quantity a, struct cm_quantity b,
                     struct cm_quantity *out)
{
    (void)symbols;
    if (is_same(a, b))
        return take(a, out);
    return a.is_number && b.is_number &&
           take_number(a.number < b.number ? a.number : b.number, out);
}

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
        if (items[i].is_number || items[i].symbol)
            return true;
    return false;
}

void cm_infer_quantities(struct cm_infer *in, cm_quantity_fn *join)
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
            if (!join(cm_quantity_symbols(in, dtype), item_of(&joined, k), item_of(&next, k),
                      &items[k]))
                items[k] = (struct cm_quantity){0};
        joined = (struct cm_known){joined.rank > next.rank ? joined.rank : next.rank, count, items};
    }
    if (is_some(joined.items, joined.count))
        cm_infer_set_known(in, 0, joined.rank, joined.count, joined.items);
}
