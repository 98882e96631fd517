/* Products of dimensions, symbols among them. A product of symbols is a symbol again, the same for
 * the same factors in any order: so what is flattened and unfolded again is known to be the same.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_DIM_PRODUCT_H
#define CM_GRAPH_DIM_PRODUCT_H

#include "graph/type.h"

/* A number times symbols. */
struct cm_product {
    int64_t number;
    uint32_t symbols[CM_MAX_RANK]; /* none of them a product */
    int n_symbols;
    bool known; /* no factor is unknown, and all of it fits */
    bool zero;  /* a factor is 0, so the others do not matter */
};

#define CM_PRODUCT_ONE ((struct cm_product){.number = 1, .known = true})

void cm_product_times(struct cm_product *product, const struct cm_symbols *symbols,
                      struct cm_dim dim);
/* Of dimensions [from, to) of a type whose rank is known. */
struct cm_product cm_product_of(const struct cm_symbols *symbols, const struct cm_type *type,
                                int from, int to);
/* Strikes out the symbols that both have. */
void cm_product_cancel(struct cm_product *a, struct cm_product *b);
/* Are both surely the same? */
bool cm_product_same(struct cm_product a, struct cm_product b);
/* As a dimension: unknown where the product is not known or has very many factors. */
struct cm_dim cm_product_dim(struct cm_symbols *symbols, const struct cm_product *product);

#endif
