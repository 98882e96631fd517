/* Products of dimensions, and the symbols that stand for them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/dim_product.h"

#include "base/number.h"

/* More factors than this make an unknown dimension: nobody writes such a shape, and a file shall
 * not make the table of symbols large. */
enum { FACTORS_MAX = 8 };

static void add_symbol(struct cm_product *product, uint32_t symbol)
{
    if (product->n_symbols < CM_MAX_RANK)
        product->symbols[product->n_symbols++] = symbol;
    else
        product->known = false;
}

void cm_product_times(struct cm_product *product, const struct cm_symbols *symbols,
                      struct cm_dim dim)
{
    struct cm_symbol_factors factors;

    if (dim.value == 0) {
        *product = (struct cm_product){.known = true, .zero = true};
    } else if (product->zero) {
        return;
    } else if (cm_dim_known(dim)) {
        product->known = cm_dim_mul(product->number, dim.value, &product->number) && product->known;
    } else if (cm_symbol_factors(symbols, dim.symbol, &factors)) {
        product->known =
            cm_dim_mul(product->number, factors.number, &product->number) && product->known;
        for (size_t i = 0; i < factors.count; i++)
            add_symbol(product, cm_symbol_factor(&factors, i));
    } else if (dim.symbol) {
        add_symbol(product, dim.symbol);
    } else {
        product->known = false;
    }
}

struct cm_product cm_product_of(const struct cm_symbols *symbols, const struct cm_type *type,
                                int from, int to)
{
    struct cm_product product = CM_PRODUCT_ONE;
    for (int i = from; i < to; i++)
        cm_product_times(&product, symbols, type->dims[i]);
    return product;
}

void cm_product_cancel(struct cm_product *a, struct cm_product *b)
{
    for (int i = 0; i < a->n_symbols;) {
        int j = 0;
        while (j < b->n_symbols && b->symbols[j] != a->symbols[i])
            j++;
        if (j == b->n_symbols) {
            i++;
            continue;
        }
        a->symbols[i] = a->symbols[--a->n_symbols];
        b->symbols[j] = b->symbols[--b->n_symbols];
    }
}

bool cm_product_same(struct cm_product a, struct cm_product b)
{
    if (!a.known || !b.known || a.zero || b.zero)
        return a.known && b.known && a.zero && b.zero;
    cm_product_cancel(&a, &b);
    return a.number == b.number && !a.n_symbols && !b.n_symbols;
}

struct cm_dim cm_product_dim(struct cm_symbols *symbols, const struct cm_product *product)
{
    uint32_t sorted[FACTORS_MAX];
    const int count = product->n_symbols;

    if (product->zero)
        return CM_DIM(0);
    if (!product->known || count > FACTORS_MAX)
        return CM_DIM_ANY;
    if (!count)
        return CM_DIM(product->number);
    if (count == 1 && product->number == 1)
        return (struct cm_dim){CM_DIM_UNKNOWN, product->symbols[0]};
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > product->symbols[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = product->symbols[i];
    }
    return (struct cm_dim){CM_DIM_UNKNOWN,
                           cm_symbol_product(symbols, product->number, sorted, (size_t)count)};
}
